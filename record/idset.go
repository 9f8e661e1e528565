package record

import (
	"encoding/binary"
)

// IDSet is a set of stream entry ids. They must be added in ascending order, and take two to four bytes each. The
// zero IDSet is empty.
type IDSet struct {
	data []byte // for each id: ms minus the previous ms; then seq, minus the previous seq if ms is equal (uvarints)
	last streamID
	seen streamID // the id decoded before data[at:]; unset if at is 0
	at   int
}

type streamID struct{ ms, seq uint64 }

func splitID(id []byte) streamID {
	return streamID{binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[idLen/2:])}
}

func (a streamID) less(b streamID) bool { return a.ms < b.ms || a.ms == b.ms && a.seq < b.seq }

// Reset empties the set.
func (s *IDSet) Reset() { *s = IDSet{data: s.data[:0]} }

// Add adds an id, which must be greater than all others.
func (s *IDSet) Add(id []byte) {
	next, from := splitID(id), s.last
	s.data = binary.AppendUvarint(s.data, next.ms-from.ms)
	if next.ms != from.ms {
		from.seq = 0
	}
	s.data = binary.AppendUvarint(s.data, next.seq-from.seq)
	s.last = next
}

// Has reports whether an id is in the set. It is fast if ids are queried in ascending order.
func (s *IDSet) Has(id []byte) bool {
	want := splitID(id)
	if want.less(s.seen) {
		s.seen, s.at = streamID{}, 0
	}
	for s.at < len(s.data) && (s.at == 0 || s.seen.less(want)) {
		ms, n := binary.Uvarint(s.data[s.at:])
		seq, m := binary.Uvarint(s.data[s.at+n:])
		if ms != 0 {
			s.seen.seq = 0
		}
		s.seen.ms, s.seen.seq, s.at = s.seen.ms+ms, s.seen.seq+seq, s.at+n+m
	}
	return s.at > 0 && s.seen == want
}

// Orphan reports whether an element is a pending entry whose message is not in the set.
func (s *IDSet) Orphan(e *Element) bool {
	id := PendingID(e)
	return id != nil && !s.Has(id)
}

// PendingID returns the id of a pending entry, or nil for other elements.
func PendingID(e *Element) []byte {
	if e.Kind != Pending || len(e.Value) < idLen {
		return nil
	}
	return e.Value[:idLen]
}
