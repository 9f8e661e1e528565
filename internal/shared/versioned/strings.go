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
