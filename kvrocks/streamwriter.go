package kvrocks

import (
	"bytes"

	"kvferry/record"
)

// beginStream starts a stream.
func (w *writer) beginStream(h *record.Header) {
	w.state = StreamState{Old: w.t.format.server == serverOld}
	copy(w.state.LastGenerated[:], h.Last)
}

// entry writes an entry of a stream.
func (w *writer) entry(e *record.Element) error {
	if !IsEntry(e.Name) {
		return w.errorf(w.user, "%x is no id of an entry", e.Name)
	}
	if w.count == 1 || bytes.Compare(e.Name, w.state.First[:]) < 0 {
		copy(w.state.First[:], e.Name)
	}
	if bytes.Compare(e.Name, w.state.Last[:]) > 0 {
		copy(w.state.Last[:], e.Name)
	}
	return w.row(roleStream, e.Name, e.Value)
}

// streamExtras returns the extras of the stream's metadata row.
func (w *writer) streamExtras() []byte {
	s := &w.state
	s.RecordedFirst = s.First
	if bytes.Compare(s.Last[:], s.LastGenerated[:]) > 0 {
		s.LastGenerated = s.Last
	}
	s.Added = max(s.Added, w.count)
	return AppendStreamState(nil, *s)
}

// writeGroups writes the rows of consumer groups.
func (w *writer) writeGroups() error { return nil }
