package kvrocks

import (
	"bytes"
	"fmt"

	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// streamWriter writes streams. Rows of consumer groups follow the entries since 2.10, and were mixed with them before.
type streamWriter struct {
	w       *versioned.TypeWriter
	f       kvrocksFormat
	state   codec.StreamState
	entries uint64
	group   groupState
}

// groupState is the current consumer group.
type groupState struct {
	open      bool
	name      []byte
	value     codec.Group
	consumers map[string]*codec.Consumer // until their pending entries are counted
}

func newStreamWriter(w *versioned.TypeWriter, f kvrocksFormat) versioned.ElementWriter {
	return &streamWriter{w: w, f: f}
}

// Begin starts a stream.
func (s *streamWriter) Begin() {
	m := &s.w.Meta().Stream
	s.state = codec.StreamState{Old: s.f.server == serverOld, Added: m.Added, LastGenerated: codec.StreamID(m.Last),
		MaxDeleted: codec.StreamID(m.MaxDeleted)}
	s.entries, s.group = 0, groupState{name: s.group.name[:0]}
}

// Write writes entries, and buffers parts of consumer groups.
func (s *streamWriter) Write(elems []record.Element) error {
	for i := range elems {
		if err := s.element(&elems[i]); err != nil {
			return fmt.Errorf("stream %s: %w", record.Quote(s.w.Meta().Key), err)
		}
	}
	return nil
}

func (s *streamWriter) element(e *record.Element) error {
	switch e.Kind {
	case record.Group:
		return s.beginGroup(e)
	case record.Consumer:
		return s.consumer(e)
	case record.Pending:
		return s.pending(e)
	}
	if !codec.IsEntry(e.Name) {
		return fmt.Errorf("%x is not the id of an entry", e.Name)
	}
	if s.entries++; s.entries == 1 || bytes.Compare(e.Name, s.state.First[:]) < 0 {
		copy(s.state.First[:], e.Name)
	}
	if bytes.Compare(e.Name, s.state.Last[:]) > 0 {
		copy(s.state.Last[:], e.Name)
	}
	if s.w.InOrder() && !s.f.before10() {
		return s.w.Put(e.Name, e.Value)
	}
	return s.w.Sort(0, e.Name, e.Value)
}

// groupRow buffers a row of a consumer group.
func (s *streamWriter) groupRow(k codec.GroupKey, value []byte) error {
	k.Old = s.f.before10()
	return s.w.Sort(0, codec.AppendGroupKey(nil, k), value)
}

// beginGroup starts a consumer group.
func (s *streamWriter) beginGroup(e *record.Element) error {
	if err := s.endGroup(); err != nil {
		return err
	}
	g, err := record.DecodeGroup(e.Value)
	if err != nil {
		return err
	}
	s.state.Groups++
	s.group = groupState{open: true, name: append(s.group.name[:0], e.Name...), consumers: map[string]*codec.Consumer{}}
	s.group.value.EntriesRead = g.Read
	copy(s.group.value.LastDelivered[:], g.Last)
	if added := max(s.state.Added, s.entries); g.Read >= 0 && uint64(g.Read) < added {
		s.group.value.Lag = added - uint64(g.Read)
	}
	return nil
}

func (s *streamWriter) consumer(e *record.Element) error {
	c, err := record.DecodeConsumer(e.Value)
	if err != nil {
		return err
	}
	s.group.value.Consumers++
	s.group.consumers[string(c.Name)] = &codec.Consumer{LastAttempt: codec.UnixMillis(max(0, c.SeenMS)),
		LastSuccess: codec.UnixMillis(max(0, c.ActiveMS))}
	return nil
}

func (s *streamWriter) pending(e *record.Element) error {
	p, err := record.DecodePending(e.Value)
	if err != nil {
		return err
	}
	s.group.value.Pending++
	if c := s.group.consumers[string(p.Consumer)]; c != nil {
		c.Pending++
	}
	k := codec.GroupKey{Kind: codec.KindPending, Group: s.group.name}
	copy(k.ID[:], p.ID)
	return s.groupRow(k, codec.AppendPending(nil,
		codec.Pending{Delivered: codec.UnixMillis(p.DeliveredMS), Count: uint64(p.Count), Consumer: p.Consumer}))
}

// endGroup buffers the rows of a consumer group that contain counts.
func (s *streamWriter) endGroup() error {
	g := &s.group
	if !g.open {
		return nil
	}
	g.open = false
	for name, c := range g.consumers {
		err := s.groupRow(codec.GroupKey{Kind: codec.KindConsumer, Group: g.name, Consumer: []byte(name)},
			codec.AppendConsumer(nil, *c))
		if err != nil {
			return err
		}
	}
	return s.groupRow(codec.GroupKey{Kind: codec.KindGroup, Group: g.name}, codec.AppendGroup(nil, g.value))
}

// End writes the buffered rows; metadata counts entries.
func (s *streamWriter) End() error {
	if err := s.endGroup(); err != nil {
		return err
	}
	if err := s.w.Sorted(func(_ uint64, sub, value []byte) error { return s.w.Put(sub, value) }); err != nil {
		return err
	}
	st := &s.state
	st.RecordedFirst = st.First
	if bytes.Compare(st.Last[:], st.LastGenerated[:]) > 0 {
		st.LastGenerated = st.Last
	}
	st.Added = max(st.Added, s.entries)
	s.w.Meta().Value = codec.AppendStreamState(nil, *st)
	s.w.Count(s.entries)
	return nil
}
