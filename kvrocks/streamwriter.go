package kvrocks

import (
	"bytes"

	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// groupState is the consumer group that is being written.
type groupState struct {
	open      bool
	name      []byte
	value     codec.Group
	consumers map[string]*codec.Consumer // until their pending entries are counted
}

// beginStream starts a stream. Before 2.10 the rows of consumer groups lie between the entries, so that all are sorted.
func (w *writer) beginStream(h *record.Header) {
	w.state = codec.StreamState{Old: w.t.format.server == serverOld, Added: h.Added}
	copy(w.state.LastGenerated[:], h.Last)
	copy(w.state.MaxDeleted[:], h.MaxDeleted)
	w.group = groupState{name: w.group.name[:0]}
	if w.groups.Reset(); w.t.format.oldGroups() {
		w.inOrder = false
		w.sorted.Reset()
	}
}

// entry writes an entry of a stream, or puts a part of a consumer group by.
func (w *writer) entry(e *record.Element) error {
	switch e.Kind {
	case record.Group:
		w.count--
		return w.beginGroup(e)
	case record.Consumer:
		w.count--
		return w.consumer(e)
	case record.Pending:
		w.count--
		return w.pending(e)
	}
	if !codec.IsEntry(e.Name) {
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

// groupRow puts a row of a consumer group by.
func (w *writer) groupRow(k codec.GroupKey, value []byte) error {
	k.Old = w.t.format.oldGroups()
	sub := codec.AppendGroupKey(nil, k)
	if k.Old {
		return w.sorted.Add(0, sub, value)
	}
	return w.groups.Add(0, sub, value)
}

// beginGroup starts a consumer group.
func (w *writer) beginGroup(e *record.Element) error {
	if err := w.endGroup(); err != nil {
		return err
	}
	g, err := record.DecodeGroup(e.Value)
	if err != nil {
		return err
	}
	w.state.Groups++
	w.group = groupState{open: true, name: append(w.group.name[:0], e.Name...), consumers: map[string]*codec.Consumer{}}
	w.group.value.EntriesRead = g.Read
	copy(w.group.value.LastDelivered[:], g.Last)
	if g.Read >= 0 && uint64(g.Read) < max(w.state.Added, w.count) {
		w.group.value.Lag = max(w.state.Added, w.count) - uint64(g.Read)
	}
	return nil
}

func (w *writer) consumer(e *record.Element) error {
	c, err := record.DecodeConsumer(e.Value)
	if err != nil {
		return err
	}
	w.group.value.Consumers++
	w.group.consumers[string(c.Name)] = &codec.Consumer{LastAttempt: codec.UnixMillis(max(0, c.SeenMS)), LastSuccess: codec.UnixMillis(max(0, c.ActiveMS))}
	return nil
}

func (w *writer) pending(e *record.Element) error {
	p, err := record.DecodePending(e.Value)
	if err != nil {
		return err
	}
	w.group.value.Pending++
	if c := w.group.consumers[string(p.Consumer)]; c != nil {
		c.Pending++
	}
	k := codec.GroupKey{Kind: codec.KindPending, Group: w.group.name}
	copy(k.ID[:], p.ID)
	return w.groupRow(k, codec.AppendPending(nil, codec.Pending{Delivered: codec.UnixMillis(p.DeliveredMS), Count: uint64(p.Count), Consumer: p.Consumer}))
}

// endGroup writes the rows of a consumer group that have counts.
func (w *writer) endGroup() error {
	g := &w.group
	if !g.open {
		return nil
	}
	g.open = false
	for name, c := range g.consumers {
		if err := w.groupRow(codec.GroupKey{Kind: codec.KindConsumer, Group: g.name, Consumer: []byte(name)}, codec.AppendConsumer(nil, *c)); err != nil {
			return err
		}
	}
	return w.groupRow(codec.GroupKey{Kind: codec.KindGroup, Group: g.name}, codec.AppendGroup(nil, g.value))
}

// streamExtras returns the extras of the stream's metadata row.
func (w *writer) streamExtras() []byte {
	s := &w.state
	s.RecordedFirst = s.First
	if bytes.Compare(s.Last[:], s.LastGenerated[:]) > 0 {
		s.LastGenerated = s.Last
	}
	s.Added = max(s.Added, w.count)
	return codec.AppendStreamState(nil, *s)
}

// writeGroups writes the rows of consumer groups, which come after the entries since 2.10.
func (w *writer) writeGroups() error {
	return w.groups.Each(func(_ uint64, sub, value []byte) error {
		w.key = append(w.key[:w.base], sub...)
		return w.out[roleStream].Append(w.key, value)
	})
}
