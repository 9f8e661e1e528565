package versioned

import (
	"kvferry/record"
	"kvferry/store"
)

// WriteStrings writes whole strings.
func (w *Writer) WriteStrings(batch []record.StringRecord) error {
	t := w.typeOf(record.String)
	if t == nil || t.own != nil || t.data != nil || t.MetaLane != nil {
		return record.WriteStrings(w, batch)
	}
	for len(batch) > 0 {
		n, err := t.writeStrings(batch)
		if err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// arenaFull is the number of buffered bytes that ends a group of rows.
const arenaFull = 64 << 10

// writeStrings writes the first strings of a batch, each as its meta row, and returns their number.
func (t *TypeWriter) writeStrings(batch []record.StringRecord) (n int, err error) {
	if t.metaLane, err = laneOf(t.metas, t.metaLane, nil, nil); err != nil {
		return 0, err
	}
	t.arena, t.group = t.arena[:0], store.Group{Rows: t.group.Rows[:0]}
	for n < len(batch) && len(t.arena) < arenaFull {
		s := &batch[n]
		n++
		s.Header(&t.h)
		if err := t.beginMeta(&t.h); err != nil {
			return 0, err
		}
		t.m.Value = s.Value
		t.group.Rows = append(t.group.Rows, t.stringRow())
	}
	if t.ValueFirst {
		t.group.Ends, t.group.EndLen = t.arena, len(t.arena)/n
	}
	t.h, t.m.Key, t.m.Value = record.Header{}, nil, nil
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

// WriteStrings writes whole strings of the shard, in order within each part.
func (s *Shard) WriteStrings(batch []record.StringRecord) error {
	for from := 0; from < len(batch); {
		part, n, err := s.together(batch[from:])
		if err != nil {
			return err
		}
		if from == 0 && n == len(batch) {
			return s.writer(part).WriteStrings(batch)
		}
		s.strings[part] = append(s.strings[part], batch[from:from+n]...)
		from += n
	}
	for part, some := range s.strings {
		if len(some) == 0 {
			continue
		}
		if err := s.writer(part).WriteStrings(some); err != nil {
			return err
		}
		clear(some)
		s.strings[part] = some[:0]
	}
	return nil
}

// together returns the part of the first string and the number of leading strings that belong to it.
func (s *Shard) together(batch []record.StringRecord) (part, n int, err error) {
	if part, err = s.route(record.String, batch[0].Key); err != nil {
		return 0, 0, err
	}
	if !s.o.ByKey {
		return part, len(batch), nil
	}
	for n = 1; n < len(batch) && s.o.PartOf(record.String, batch[n].Key) == part; n++ {
	}
	return part, n, nil
}
