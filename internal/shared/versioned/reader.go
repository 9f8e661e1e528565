package versioned

import (
	"bytes"
	"errors"
	"io"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/store"
)

func openReader(p *Pass) (record.Reader, error) {
	r := &Reader{Pass: p, drained: true, sets: make([]RowSet, len(p.store.data)), lost: make([]orphans, len(p.store.data))}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return record.Gather(r, nil), nil
}

func (r *Reader) open() error {
	it, err := r.store.openMetas(r.span, r.env, r.memory)
	if err != nil {
		return err
	}
	r.metas = store.NewBuffer(it)
	for i, sp := range r.store.data {
		if sp.types&r.types == 0 || sp.index && (!r.wantsIndex() || !sp.Listed) {
			continue
		}
		if r.sets[i], err = r.openSet(i, sp); err != nil {
			return err
		}
	}
	return nil
}

// wantsIndex reports whether index rows are read.
func (r *Reader) wantsIndex() bool {
	s := r.env.Start
	return s != nil && s.ByScore || !r.env.RecordsOnly || r.store.Layout.Unlisted
}

func (r *Reader) openSet(i int, sp *rows) (RowSet, error) {
	if sp.lanes == nil {
		it, err := sp.Order.open(sp.Keyspace.Keyspace, r.span)
		if err != nil {
			return nil, err
		}
		return NewOrderedRows(it, sp.Order, sp.Comparer().Compare, r.stray(i)), nil
	}
	s, err := sp.lanes.Open(r.span.Lo, r.span.Hi, r.lookAhead(), r.stray(i))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Next moves to the next meta row that makes a record; it classifies the rows of skipped meta rows.
func (r *Reader) Next() (*record.Header, error) {
	for {
		alive, err := r.next()
		if err != nil {
			return nil, err
		}
		if !alive {
			continue
		}
		if err = r.start(); err != nil && r.spoils(err) {
			continue
		}
		r.lighten()
		if own := r.store.Layout.OwnRecord; err != nil || own == nil || !own(r.m.Key) {
			return &r.h, err
		}
		rec := record.Record{Class: record.Housekeeping}
		if err := r.End(&rec); err != nil {
			return nil, err
		}
		r.books.Add(&rec)
	}
}

// decodeMeta decodes a meta row. If it makes no record, the row and its rows get their class.
func (r *Reader) decodeMeta(raw, value []byte) (alive bool, err error) {
	l, m := r.store.Layout, &r.m
	m.Key, m.Tail, m.Ambiguous, m.Native, m.Bare, r.h.Type = nil, 0, false, "", false, 0
	r.unplaced = false
	if len(l.Codecs) == 1 {
		r.h.Type = l.Codecs[0].Type
	}
	if l.Own != nil {
		if own, err := l.Own(raw, value); err != nil {
			r.Malformed(dataset.ValueKind(err), nil, raw, r.metas.Place(), err)
			return false, nil
		} else if own {
			r.meta.Rows[record.Housekeeping]++
			return false, nil
		}
	}
	if err := l.DecodeMetaKey(m, raw); err != nil {
		r.Malformed(r.keyKind(err), m.Key, raw, r.metas.Place(), err)
		return false, nil
	}
	if l.TypeOf != nil {
		if r.h.Type, err = r.store.typeOf(value); err != nil {
			r.Malformed(dataset.ValueKind(err), m.Key, raw, r.metas.Place(), err)
			return false, r.buryTypes()
		}
	}
	r.use(r.store.codecs[r.h.Type])
	if !r.types.Has(r.h.Type) {
		r.meta.Rows[record.Filtered]++
		if err := r.seek(m.Key); err != nil {
			return false, err
		}
		return false, r.buryAll(record.Filtered)
	}
	bad := r.cur.DecodeMeta(m, value)
	if m.Bare {
		r.bare()
	}
	if err := r.seek(m.Key); err != nil {
		return false, err
	}
	if err := bad; err != nil {
		kind, class := dataset.ValueKind(err), record.Orphan
		if kind == record.FindNewer {
			class = record.Malformed // the rows belong to the record, but in an unknown form
		}
		r.Malformed(kind, m.Key, raw, r.metas.Place(), err)
		if l.Unlisted {
			m.Count, r.unplaced = -1, true
			return true, nil
		}
		return false, r.buryAll(class)
	}
	if m.Ambiguous && r.again(raw) {
		return false, nil
	}
	if out, err := r.refused(); out || err != nil {
		return false, err
	}
	if m.Gone {
		r.meta.Rows[record.Deleted]++
		return false, r.buryAll(record.Deleted)
	}
	return true, nil
}

// lighten frees large values of meta rows: other records may be read before this one.
func (r *Reader) lighten() {
	if r.special != nil || r.listed != nil { // it may read the value
		return
	}
	r.metas.Release()
	if r.h.Type == record.String && r.metas.Released() {
		r.m.Value = nil
	}
}

// refused reports whether the format rejects the record. If so, it classifies its rows.
func (r *Reader) refused() (bool, error) {
	if r.accept == nil || r.m.Gone {
		return false, nil
	}
	r.h.Key, r.h.Expired = r.m.Key, false
	r.limit.Begin()
	ok, err := r.accept(r.Pass)
	if ok || err != nil {
		return false, err
	}
	r.meta.Rows[record.Orphan]++
	return true, r.buryAll(record.Orphan)
}

// again reports whether the previous meta row has the same user key, which can happen if raw keys have several forms.
// The data rows of the two meta rows are indistinguishable.
func (r *Reader) again(raw []byte) bool {
	same := r.twice != nil && bytes.Equal(r.twice, r.m.Key)
	r.twice = record.KeepKey(r.twice, r.m.Key)
	if same {
		r.Malformed(FindSameKey, r.m.Key, raw, r.metas.Place(), errSameKey)
	}
	return same
}

var errSameKey = errors.New("it has the same user key as the previous row; the engine wrote no data that distinguishes them")

// use selects the row sets of the current record's type.
func (r *Reader) use(c *typeRows) {
	r.cur, r.rows, r.byScore, r.special = c, nil, nil, nil
	if c.data >= 0 {
		r.rows = r.sets[c.data]
	}
	if c.index >= 0 {
		r.byScore = r.sets[c.index]
	}
	if c.Elements != nil && r.types.Has(c.Type) {
		if r.own[c.Type] == nil {
			r.own[c.Type] = c.Elements(r)
		}
		r.special = r.own[c.Type]
	}
}

// bare deselects the row sets: the current record has no data rows.
func (r *Reader) bare() {
	r.rows, r.byScore = nil, nil
	if r.h.Type == record.String {
		r.special = nil
	}
}

// seek moves the cursors to the rows of a key.
func (r *Reader) seek(key []byte) error {
	if r.rows != nil {
		if err := r.rows.Seek(key); err != nil {
			return err
		}
	}
	if r.byScore != nil {
		return r.byScore.Seek(key)
	}
	return nil
}

// start starts the record of the meta row.
func (r *Reader) start() error {
	r.begin()
	h, m := &r.h, &r.m
	if r.cur.Start != nil {
		r.cur.Start(m)
	}
	h.Len, h.ByName = max(m.Count, -1), h.Type != record.List && h.Type != record.String && !m.Unsorted
	h.Last, h.Added, h.MaxDeleted, h.Native, h.Sought = nil, 0, nil, m.Native, false
	r.marks, r.newer, r.want, r.outside, r.drained = 0, 0, m.Left+1, 0, false
	switch {
	case r.special != nil:
		r.begun = r.special
		if err := r.special.Begin(); err != nil {
			return err
		}
	case h.Type == record.String:
		h.Len = 1
		if r.rows != nil { // left over from a collection of this name
			if err := r.buryAll(record.Stale); err != nil {
				return err
			}
		}
	case h.Type == record.Stream:
		r.last = r.last[:0]
		m.Stream.header(h)
	}
	r.scored = 0
	if s := r.env.Start; s != nil {
		seek := r.seekElement
		if s.ByScore {
			seek = r.seekScore
		}
		if err := seek(s); err != nil {
			return err
		}
	}
	if c := r.cur; c.Remark != nil && !h.Expired {
		if kind, detail := c.Remark(m); kind != "" {
			r.Remark(kind, record.Note, detail)
		}
	}
	return nil
}

// Read returns the next elements: in list order, or in the order of their names.
func (r *Reader) Read(dst []record.Element) (int, error) {
	if r.drained {
		return 0, io.EOF
	}
	if len(dst) == 0 {
		return 0, nil
	}
	if r.lone != nil {
		return r.readLone(dst)
	}
	if r.scored > 0 {
		return r.readScored(dst)
	}
	if r.special != nil {
		n, err := r.special.Read(dst)
		r.drained = err == io.EOF
		return n, err
	}
	if r.h.Type == record.String {
		return r.readString(&dst[0])
	}
	for {
		r.m.Arena = bufpool.Reset(r.m.Arena)
		rows, skip, err := r.rows.Batch(len(dst))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			err := r.complete()
			if r.lone == nil {
				return 0, err
			}
			return r.readLone(dst)
		}
		n := r.setElements(dst, rows, skip)
		if n == 0 {
			continue
		}
		if r.rows.Ended() {
			err := r.complete()
			if r.lone == nil {
				return n, err
			}
		}
		return n, nil
	}
}

func (r *Reader) readString(e *record.Element) (int, error) {
	r.drained = true
	if r.metas.Released() {
		row, err := r.metas.Last()
		if err != nil {
			return 0, err
		}
		if r.m.Value, err = r.cur.stringValue(r.m.Key, row.Value); err != nil {
			return 0, err
		}
	}
	*e = record.Element{Value: r.m.Value}
	return 1, io.EOF
}

// setElements sets the elements of the live rows of the current record, as views, and returns their number. It classifies the
// other rows.
func (r *Reader) setElements(dst []record.Element, rows []store.Row, skip int) int {
	n, m, element := 0, &r.m, r.cur.Element
	for i := range rows {
		e, rest := &dst[n], rows[i].Key[skip:]
		v, ok := element(m, e, rest, rows[i].Value)
		if !ok {
			if bound := r.cur.Bound; bound != nil && bound(m, rest, rows[i].Value) {
				r.bounds++
				r.want = m.Left + 1
				continue
			}
			if !r.otherLife(v, i) {
				r.Reject(&rows[i], i)
			}
			continue
		}
		if v != m.Version {
			if class := r.otherVersion(v, r.rows, i); class != record.Copied {
				r.tallies[r.cur.data].Rows[class]++
				continue
			}
		}
		switch r.h.Type {
		case record.List:
			if !r.inside(r.cur.Position(rest), i) {
				continue
			}
		case record.ZSet:
			if r.byScore != nil {
				r.mark(e, i)
			}
		case record.Stream:
			r.last = append(r.last[:0], e.Name...)
		}
		if r.cur.Taken != nil {
			r.cur.Taken(r, e, i)
		}
		n++
	}
	r.alive += int64(n)
	return n
}

// otherLife reports whether row i of the last batch, which is not of the record's type, comes from another life of its
// key with another type. If so, it classifies the row.
func (r *Reader) otherLife(v int64, i int) bool {
	return r.store.data[r.cur.data].User != nil && r.Stale(v, i)
}

// Heavy reports whether values of the current record were freed, to be read again when they are wanted.
func (r *Reader) Heavy() bool {
	if r.special == nil && r.h.Type == record.String {
		return r.metas.Released()
	}
	return r.rows != nil && r.rows.Released()
}

// End reads the rest of the current record, to classify its rows. Lookups pass them.
func (r *Reader) End(rec *record.Record) error {
	if e := r.begun; e != nil {
		r.begun, r.drained = nil, true
		if err := e.End(); err != nil {
			return err
		}
		r.reportNewer()
	}
	for !r.drained {
		r.rest = record.Room(r.rest)
		n, err := r.Read(r.rest)
		if err != nil && err != io.EOF {
			return err
		}
		clear(r.rest[:n])
		if r.env.Lookups && !r.drained && r.special == nil && r.rows != nil {
			if err := r.pass(); err != nil {
				return err
			}
		}
	}
	r.m.Arena, r.m.Value = bufpool.Reset(r.m.Arena), nil
	rec.Rows = r.rowsOf()
	return nil
}

// pass moves behind the rows of the current record by seeks, those of its index, too: left over, they would be a record of
// their own in an unlisted keyspace.
func (r *Reader) pass() (err error) {
	_, end := r.cur.DataRows.Range(r.h.Key)
	if end == nil {
		return nil
	}
	r.drained = true
	if r.byScore != nil {
		_, last := r.cur.IndexRows.Range(r.h.Key)
		err = r.byScore.SeekRow(last)
	}
	return errors.Join(err, r.rows.SeekRow(end))
}

// end classifies the rows after the last meta row, once.
func (r *Reader) end() error {
	if r.ended || r.env.Start != nil { // a lookup may have left rows unread
		return io.EOF
	}
	r.ended = true
	for i, set := range r.sets {
		if set == nil {
			continue
		}
		if err := set.Finish(); err != nil {
			return err
		}
		r.flush(i, &r.lost[i])
	}
	if rest := r.store.Layout.Rest; rest != nil && r.span.Lo == nil {
		if err := rest(r.Pass); err != nil {
			return err
		}
	}
	return io.EOF
}

// release collects the counts of all cursors and closes them.
func (r *Reader) release() error {
	var err error
	if r.lone != nil {
		err = r.lone.sorter.Close()
	}
	if r.metas != nil {
		err = errors.Join(err, dataset.Drop(r.metas, &r.meta))
	}
	for i, set := range r.sets {
		if set != nil {
			err = errors.Join(err, dataset.Drop(set, &r.tallies[i]))
		}
	}
	for _, e := range r.own {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	return err
}

// Close publishes the counts.
func (r *Reader) Close() error {
	err := r.release()
	r.books.Close(r.env.Ledger)
	r.Publish()
	return err
}
