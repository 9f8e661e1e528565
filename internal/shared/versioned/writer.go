package versioned

import (
	"errors"
	"fmt"

	"kvferry/internal/shared/keylanes"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// Put writes a data row of the current record; rest is the part of its key after the user key and the version.
func (t *TypeWriter) Put(rest, value []byte) error {
	t.key = append(append(t.key[:t.base], rest...), t.Tail...)
	return t.put(value)
}

// Meta returns the meta row of the current record, as far as known before its elements.
func (t *TypeWriter) Meta() *Meta { return &t.m }

// InOrder reports whether the elements come in the order of names.
func (t *TypeWriter) InOrder() bool { return t.inOrder }

// Alone writes the current record as a single meta row.
func (t *TypeWriter) Alone() error {
	t.alone = true
	return t.putMeta()
}

// Count sets the count of the meta row, if it is not the number of elements.
func (t *TypeWriter) Count(n uint64) { t.count = n }

// Sort buffers a data row; Sorted calls f with the record's buffered rows, by prefix and then by rest.
func (t *TypeWriter) Sort(prefix uint64, rest, value []byte) error {
	return t.w.sorted.Add(prefix, rest, value)
}

// SortRoom buffers a data row and returns n bytes for its value, writable until the next row is buffered.
func (t *TypeWriter) SortRoom(prefix uint64, rest []byte, n int) ([]byte, error) {
	return t.w.sorted.Room(prefix, rest, n)
}

// Sorted calls f with the buffered rows in order.
func (t *TypeWriter) Sorted(f func(prefix uint64, rest, value []byte) error) error {
	return t.w.sorted.Each(f)
}

// NewWriter returns a writer. The types share its memory.
func NewWriter(l *Layout, o WriterOptions) *Writer {
	sorting := extsort.Options{Memory: o.Memory / 4, TempDir: o.TempDir}
	return &Writer{layout: l, o: o, runs: map[string]*keylanes.Runs{}, sorted: extsort.New(sorting),
		byScore: extsort.New(sorting)}
}

// runsOf returns the writer of a keyspace. Rows of a lane come in order, so its spool keeps them as they come and needs
// no real comparison.
func (w *Writer) runsOf(name string) *keylanes.Runs {
	if name == "" {
		return nil
	}
	if r := w.runs[name]; r != nil {
		return r
	}
	r := keylanes.NewRuns(keylanes.RunsOptions{
		Open:    func(id uint64) (store.Run, error) { return w.o.Builder.Run(name, w.o.Shard, id) },
		Compare: func(_, _ []byte) int { return 0 },
		Memory:  w.o.Memory / 4,
		TempDir: w.o.TempDir,
	})
	w.runs[name] = r
	return r
}

// typeOf returns the writer of a type, nil if the layout has no such type.
func (w *Writer) typeOf(t record.Type) *TypeWriter {
	if int(t) >= len(w.types) {
		return nil
	}
	if w.types[t] == nil {
		for _, c := range w.layout.Codecs {
			if c.Type == t {
				tw := &TypeWriter{Codec: c, w: w, metas: w.runsOf(w.layout.Metas), data: w.runsOf(c.Data),
					scores: w.runsOf(c.Index)}
				if c.Writer != nil {
					tw.own = c.Writer(tw)
				}
				w.types[t] = tw
			}
		}
	}
	return w.types[t]
}

// Begin starts a record.
func (w *Writer) Begin(h *record.Header) error {
	if w.cur = w.typeOf(h.Type); w.cur == nil {
		return fmt.Errorf("%s %s: %s has no such type", h.Type, record.Quote(h.Key), w.layout.Format)
	}
	return w.cur.begin(h)
}

// Elements appends elements of the record.
func (w *Writer) Elements(elems []record.Element) error { return w.cur.write(elems) }

// End finishes the record.
func (w *Writer) End() error { return w.cur.end() }

// Close finishes the runs.
func (w *Writer) Close() error {
	for _, r := range w.runs {
		if err := r.Close(); err != nil {
			return err
		}
	}
	return w.free()
}

// Abort drops the runs.
func (w *Writer) Abort() {
	for _, r := range w.runs {
		r.Abort()
	}
	w.free()
}

// free closes the sorters. It is idempotent.
func (w *Writer) free() error { return errors.Join(w.sorted.Close(), w.byScore.Close()) }

// begin starts a record.
func (t *TypeWriter) begin(h *record.Header) (err error) {
	if err := t.beginMeta(h); err != nil {
		return err
	}
	m := &t.m
	m.Key = append(t.keyRoom[:0], h.Key...)
	t.keyRoom, t.count, t.alone = m.Key, 0, false
	if h.Type == record.Stream {
		m.Stream = StreamMeta{}
		m.Stream.begin(h)
	}
	t.metaKey = t.w.layout.AppendMetaKey(t.metaKey[:0], h.Key)
	if t.metaLane, err = laneOf(t.metas, t.metaLane, t.MetaLane, h.Key); err != nil || t.data == nil {
		return err
	}
	t.key = t.AppendRow(t.key[:0], h.Key, m.Version)
	t.base = len(t.key)
	if t.own != nil && t.DataLane != nil {
		t.dataLane = nil // until the first row
	} else if t.dataLane, err = laneOf(t.data, t.dataLane, t.DataLane, h.Key); err != nil {
		return err
	}
	if t.scores != nil {
		if err := t.beginScores(h.Key); err != nil {
			return err
		}
	}
	if t.inOrder = (h.ByName && !t.Sorts) || h.Type == record.List; t.own != nil || !t.inOrder {
		t.w.sorted.Reset()
	}
	if t.own != nil {
		t.own.Begin()
	}
	return nil
}

// beginMeta sets the fields of the meta row that are known before the elements. The key is a view.
func (t *TypeWriter) beginMeta(h *record.Header) (err error) {
	if t.Refuse != nil {
		if err := t.Refuse(h); err != nil {
			return fmt.Errorf("%s %s: %w", h.Type, record.Quote(h.Key), err)
		}
	}
	if t.w.o.Unique {
		t.w.o.Version--
	}
	m := &t.m
	m.Key, m.Version, m.ModifiedMS, m.Native = h.Key, t.w.o.Version, t.w.o.NowMS, h.Native // the rest is set where it is known
	m.ExpireMS, err = t.Expiry(h)
	return err
}

func (t *TypeWriter) beginScores(key []byte) (err error) {
	appendRow := t.AppendIndexRow
	if appendRow == nil {
		appendRow = t.AppendRow
	}
	t.index = appendRow(t.index[:0], key, t.m.Version)
	t.w.byScore.Reset()
	t.scoreLane, err = laneOf(t.scores, t.scoreLane, t.IndexLane, key)
	return err
}

// laneOf returns the lane of a key: last, if the keyspace has a single lane.
func laneOf(r *keylanes.Runs, last *keylanes.Lane, id func(klen int) uint64, key []byte) (*keylanes.Lane, error) {
	if id == nil {
		if last != nil {
			return last, nil
		}
		return r.Lane(0)
	}
	return r.Lane(id(len(key)))
}

// write appends elements of the record.
func (t *TypeWriter) write(elems []record.Element) error {
	if t.own != nil {
		t.count += uint64(len(elems))
		return t.own.Write(elems)
	}
	switch t.Type {
	case record.String:
		return t.writeString(elems)
	case record.List:
		return t.writeItems(elems)
	case record.ZSet:
		return t.writeMembers(elems)
	case record.Stream:
		return t.writeEntries(elems)
	}
	return t.writeNames(elems)
}

// writeNames writes elements whose rows are under their names.
func (t *TypeWriter) writeNames(elems []record.Element) error {
	g := t.begun()
	for i := range elems {
		r := store.Row{Key: elems[i].Name, Value: elems[i].Value}
		if t.Type == record.Set {
			r.Value = nil
		}
		if t.AppendName != nil {
			var err error
			at := len(t.arena)
			if t.arena, err = t.AppendName(t.arena, &t.m, r.Key); err != nil {
				return fmt.Errorf("%s %s: %w", t.Type, record.Quote(t.m.Key), err)
			}
			r.Key = t.arena[at:]
		}
		g.Rows = append(g.Rows, r)
	}
	t.count += uint64(len(elems))
	return t.putGroup()
}

// begun returns an empty batch of data rows of the current record; row keys follow Prefix.
func (t *TypeWriter) begun() *store.Group {
	t.arena = t.arena[:0]
	t.group = store.Group{Prefix: t.key[:t.base], Tail: t.Tail, Suffix: t.w.o.Suffix, Rows: t.group.Rows[:0]}
	return &t.group
}

// putGroup writes the batch, or buffers it for sorting.
func (t *TypeWriter) putGroup() error {
	defer clear(t.group.Rows) // may hold the last reference to a large value
	if t.inOrder {
		return t.dataLane.AppendGroup(&t.group)
	}
	for _, r := range t.group.Rows {
		if err := t.w.sorted.Add(0, r.Key, r.Value); err != nil {
			return err
		}
	}
	return nil
}

func (t *TypeWriter) writeString(elems []record.Element) error {
	for i := range elems {
		if t.count++; t.count > 1 {
			return fmt.Errorf("string %s: more than one value", record.Quote(t.m.Key))
		}
		t.m.Value = elems[i].Value
		if err := t.Alone(); err != nil {
			return err
		}
	}
	return nil
}

// maxKept is the capacity up to which buffers are kept: a database of many stores has a writer for each.
const maxKept = 256 << 10

// shrink frees the buffers of a large value. The meta row's fields stay: it follows the data rows.
func (t *TypeWriter) shrink() {
	if cap(t.value) > maxKept {
		t.value = nil
	}
	if cap(t.arena) > maxKept {
		t.arena = nil
	}
}

// writeItems writes elements of a list under the indexes that pushing them to the right gives them.
func (t *TypeWriter) writeItems(elems []record.Element) error {
	g := t.begun()
	for i := range elems {
		at := len(t.arena)
		t.arena = t.AppendPosition(t.arena, t.First+t.count)
		g.Rows = append(g.Rows, store.Row{Key: t.arena[at:], Value: elems[i].Value})
		t.count++
	}
	return t.putGroup()
}

func (t *TypeWriter) writeMembers(elems []record.Element) error {
	g := t.begun()
	for i := range elems {
		e := &elems[i]
		if bad := t.badScore(e.Score); bad != "" {
			return fmt.Errorf("zset %s: member %s: %s", record.Quote(t.m.Key), record.Quote(e.Name), bad)
		}
		rank, mark := t.Rank(e.Score)
		var exact []byte
		if t.ExactRank != nil && len(e.Value) > 0 {
			if r, ok := t.ExactRank(e); ok {
				rank, exact = r, e.Value
			}
		}
		if err := t.w.byScore.Add(rank, e.Name, mark); err != nil {
			return err
		}
		name := e.Name
		if t.AppendName != nil {
			at := len(t.arena)
			var err error
			if t.arena, err = t.AppendName(t.arena, &t.m, name); err != nil {
				return fmt.Errorf("zset %s: %w", record.Quote(t.m.Key), err)
			}
			name = t.arena[at:]
		}
		at := len(t.arena)
		t.arena = append(t.arena, exact...)
		if exact == nil {
			t.arena = t.AppendScore(t.arena, e.Score)
		}
		g.Rows = append(g.Rows, store.Row{Key: name, Value: t.arena[at:]})
	}
	t.count += uint64(len(elems))
	return t.putGroup()
}

func (t *TypeWriter) writeEntries(elems []record.Element) (err error) {
	for i := range elems {
		e := &elems[i]
		if t.value, err = t.AppendEntry(t.value[:0], e.Value); err != nil {
			return fmt.Errorf("stream %s: %w", record.Quote(t.m.Key), err)
		}
		if err := t.m.Stream.add(t.m.Key, e.Name, t.count == 0); err != nil {
			return err
		}
		t.key = append(append(t.key[:t.base], e.Name...), t.Tail...)
		if err := t.dataLane.Append(t.key, t.value); err != nil {
			return err
		}
		t.shrink()
		t.count++
	}
	return nil
}

// put appends the row of t.key.
func (t *TypeWriter) put(value []byte) error {
	if t.dataLane == nil {
		var err error
		if t.dataLane, err = t.data.Lane(t.DataLane(len(t.m.Key))); err != nil {
			return err
		}
	}
	suffix := t.w.o.Suffix
	if len(value) > maxKept { // a large value is not copied
		return t.dataLane.AppendGroup(&store.Group{Prefix: t.key, Suffix: suffix, Rows: []store.Row{{Value: value}}})
	}
	if len(suffix) > 0 {
		t.value = append(append(t.value[:0], value...), suffix...)
		value = t.value
	}
	return t.dataLane.Append(t.key, value)
}

// end writes the sorted rows and the meta row.
func (t *TypeWriter) end() error {
	if t.alone || t.count == 0 && (t.Type != record.Stream || t.NoBlank && t.m.Stream.Last == ID{}) {
		return nil
	}
	if err := t.writeSorted(); err != nil {
		return err
	}
	if t.scores != nil {
		if err := t.writeScores(); err != nil {
			return err
		}
	}
	return t.writeMeta()
}

// writeSorted writes the buffered data rows.
func (t *TypeWriter) writeSorted() error {
	switch {
	case t.own != nil:
		return t.own.End()
	case t.inOrder:
		return nil
	}
	return t.w.sorted.Each(func(_ uint64, name, value []byte) error { return t.Put(name, value) })
}

func (t *TypeWriter) writeScores() error {
	t.arena = t.arena[:0]
	t.group = store.Group{Prefix: t.index, Tail: t.Tail, Suffix: t.w.o.Suffix, Rows: t.group.Rows[:0]}
	err := t.w.byScore.Each(func(rank uint64, member, mark []byte) error {
		at := len(t.arena)
		t.arena = append(t.AppendRank(t.arena, rank, mark), member...)
		t.group.Rows = append(t.group.Rows, store.Row{Key: t.arena[at:]})
		if len(t.group.Rows) < groupLen && len(t.arena) < arenaFull {
			return nil
		}
		return t.flushScores()
	})
	if err != nil {
		return err
	}
	return t.flushScores()
}

// groupLen is the number of index rows written at once.
const groupLen = 64

func (t *TypeWriter) flushScores() error {
	err := t.scoreLane.AppendGroup(&t.group)
	t.group.Rows, t.arena = t.group.Rows[:0], t.arena[:0]
	t.shrink()
	return err
}

func (t *TypeWriter) writeMeta() error {
	if t.MaxCount > 0 && t.count > t.MaxCount {
		return fmt.Errorf("%s %s: %s elements; the engine's limit is %s", t.Type, record.Quote(t.m.Key), record.Number(t.count),
			record.Number(t.MaxCount))
	}
	m := &t.m
	m.Count, m.Left, m.Right, m.Next = int64(t.count), t.First-1, t.First+t.count, t.First+t.count
	return t.putMeta()
}

// putMeta writes the meta row. It is the last user of Value, a view of memory that the caller or the element writer
// holds.
func (t *TypeWriter) putMeta() error {
	if t.ValueFirst {
		return t.putValue()
	}
	t.value = t.AppendMeta(t.value[:0], &t.m)
	t.m.Value = nil
	err := t.metaLane.Append(t.metaKey, t.value)
	t.shrink()
	return err
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
