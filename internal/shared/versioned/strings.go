package versioned

import (
	"kvferry/record"
	"kvferry/store"
)

// writeStrings writes whole strings.
func (w *Writer) writeStrings(list []*record.Record, elems []record.Element) error {
	t := w.typeOf(record.String)
	if t == nil || t.own != nil || t.data != nil || t.MetaLane != nil {
		return w.one(list, elems)
	}
	for len(list) > 0 {
		n, err := t.writeStrings(list, elems)
		if err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// one writes whole strings one by one.
func (w *Writer) one(list []*record.Record, elems []record.Element) error {
	for _, r := range list {
		if err := w.Begin(&r.Header); err != nil {
			return err
		}
		if err := w.Elements(elems[r.First : r.First+1]); err != nil {
			return err
		}
		if err := w.End(); err != nil {
			return err
		}
	}
	return nil
}

// arenaFull is the number of buffered bytes that ends a group of rows.
const arenaFull = 64 << 10

// writeStrings writes the first strings of a list, each as its meta row, and returns their number.
func (t *TypeWriter) writeStrings(list []*record.Record, elems []record.Element) (n int, err error) {
	if t.metaLane, err = laneOf(t.metas, t.metaLane, nil, nil); err != nil {
		return 0, err
	}
	t.arena, t.group = t.arena[:0], store.Group{Rows: t.group.Rows[:0]}
	for n < len(list) && len(t.arena) < arenaFull {
		r := list[n]
		n++
		if err := t.beginMeta(&r.Header); err != nil {
			return 0, err
		}
		t.m.Value = elems[r.First].Value
		t.group.Rows = append(t.group.Rows, t.stringRow())
	}
	if t.ValueFirst {
		t.group.Ends, t.group.EndLen = t.arena, len(t.arena)/n
	}
	t.m.Key, t.m.Value = nil, nil
	err = t.metaLane.AppendGroup(&t.group)
	clear(t.group.Rows)
	t.shrink()
	return n, err
}

// stringRow returns the meta row of a string and appends to the arena: with ValueFirst only the suffix, since the value
// is not copied, otherwise the row.
func (t *TypeWriter) stringRow() store.Row {
	if t.ValueFirst {
		row := store.Row{Key: t.m.Key, Value: t.m.Value}
		t.m.Value = nil
		t.arena = t.AppendMeta(t.arena, &t.m)
		return row
	}
	key := len(t.arena)
	t.arena = t.w.layout.AppendMetaKey(t.arena, t.m.Key)
	value := len(t.arena)
	t.arena = t.AppendMeta(t.arena, &t.m)
	return store.Row{Key: t.arena[key:value], Value: t.arena[value:]}
}

// putValue writes the meta row of the current string, in a ValueFirst layout.
func (t *TypeWriter) putValue() error {
	t.group = store.Group{Prefix: t.metaKey, Rows: append(t.group.Rows[:0], store.Row{Value: t.m.Value})}
	t.m.Value = nil
	t.value = t.AppendMeta(t.value[:0], &t.m)
	t.group.Suffix = t.value
	err := t.metaLane.AppendGroup(&t.group)
	clear(t.group.Rows)
	return err
}

// Strings writes n whole strings of a batch, in order within each part.
func (s *Shard) Strings(b *record.Batch, from, n int) error {
	for i := from; i < from+n; i++ {
		r := &b.Records[i]
		part, err := s.route(record.String, r.Key)
		if err != nil {
			return err
		}
		s.strings[part] = append(s.strings[part], r)
	}
	for part, some := range s.strings {
		if len(some) == 0 {
			continue
		}
		if err := s.writer(part).writeStrings(some, b.Elems); err != nil {
			return err
		}
		s.strings[part] = some[:0]
	}
	return nil
}
