package versioned

import (
	"bytes"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/keylanes"
	"kvferry/record"
	"kvferry/store"
)

// InOrder describes raw keys that ascend by user key, regardless of its length.
type InOrder struct {
	// AppendPrefix appends the common prefix of the raw keys of a user key's rows.
	AppendPrefix func(dst, key []byte) []byte
	// Compare compares the user keys of a raw key and of a prefix; ok is false if the raw key has no user key, or fewer
	// than MinRest bytes after it.
	Compare func(raw, prefix []byte) (c int, ok bool)
	MinRest int
	// Open opens the rows of a span that is not one range; keys are then ordered bytewise. nil: a span is a range.
	Open func(rows store.Keyspace, span format.Span) (store.Iterator, error)
}

// open opens the rows of a span.
func (o *InOrder) open(rows store.Keyspace, span format.Span) (store.Iterator, error) {
	if o.Open != nil {
		return o.Open(rows, span)
	}
	return rows.Rows(o.span(span.Lo, span.Hi))
}

// span returns the raw range of a span of user keys; nil is open.
func (o *InOrder) span(lo, hi []byte) (from, to []byte) {
	if lo != nil {
		from = o.AppendPrefix(nil, lo)
	}
	if hi != nil {
		to = o.AppendPrefix(nil, hi)
	}
	return from, to
}

// RowSet reads data rows. User keys are sought in ascending order; each row is returned once, by Batch or as a stray.
type RowSet interface {
	Seek(key []byte) error
	// SeekRow moves forward to the first row at or after one, of the key or a later one. Rows in between are not returned.
	SeekRow(raw []byte) error
	// Batch returns some of the next rows of the user key, none after the last, and the length of the key prefix to skip.
	// The rows are valid until the next call of any method.
	Batch(limit int) (rows []store.Row, skip int, err error)
	// Ended reports whether the last Batch certainly had the last rows of its key.
	Ended() bool
	// Released reports whether values of the next rows were freed until Batch returns them.
	Released() bool
	PlaceAt(i int) record.Place
	// Finish passes the remaining rows to stray.
	Finish() error
	Tally(*record.Tally)
	Close() error
}

// OrderedRows walks a keyspace that is in the order of user keys.
type OrderedRows struct {
	it      store.Batcher
	order   *InOrder
	compare func(a, b []byte) int // of the keyspace
	stray   keylanes.Stray
	room    []store.Row
	rows    []store.Row   // of the last NextBatch
	wait    store.Waiting // holds rows; may free large values
	at      int           // the next of rows to return
	start   int           // of the last batch
	want    []byte        // the prefix of the sought user key
	done    bool
}

// NewOrderedRows walks the rows of an iterator, which it closes.
func NewOrderedRows(it store.Iterator, o *InOrder, compare func(a, b []byte) int, stray keylanes.Stray) *OrderedRows {
	b := store.Batched(it)
	return &OrderedRows{it: b, order: o, compare: compare, stray: stray, wait: store.Wait(b), want: o.AppendPrefix(nil, nil)}
}

// Seek moves to the rows of a user key.
func (s *OrderedRows) Seek(key []byte) error {
	s.want = s.order.AppendPrefix(s.want[:0], key)
	for {
		if err := s.load(); err != nil || s.done {
			return err
		}
		if c, ok := s.order.Compare(s.rows[s.at].Key, s.want); ok && c >= 0 {
			s.wait.Release()
			return nil
		}
		if err := s.skip(); err != nil {
			return err
		}
	}
}

// SeekRow implements RowSet.
func (s *OrderedRows) SeekRow(raw []byte) error {
	if s.done {
		return nil
	}
	for at := s.at; at < len(s.rows); at++ {
		if s.compare(s.rows[at].Key, raw) >= 0 {
			s.at = at
			return nil
		}
	}
	s.at = len(s.rows)
	return s.it.SeekGE(raw)
}

// Batch implements RowSet.
func (s *OrderedRows) Batch(limit int) (rows []store.Row, skip int, err error) {
	for {
		if err := s.load(); err != nil || s.done {
			return nil, 0, err
		}
		if n := s.wanted(s.rows[s.at:min(len(s.rows), s.at+limit)]); n > 0 {
			s.start, s.at = s.at, s.at+n
			return s.rows[s.start:s.at], len(s.want), s.ensureValues()
		}
		if _, ok := s.order.Compare(s.rows[s.at].Key, s.want); ok {
			s.wait.Release()
			return nil, 0, nil
		}
		if err := s.skip(); err != nil {
			return nil, 0, err
		}
	}
}

// wanted counts the leading rows that are well-formed and belong to the user key. Rows ascend: if the first and the
// last start with a prefix, all do.
func (s *OrderedRows) wanted(rows []store.Row) (n int) {
	least := len(s.want) + s.order.MinRest
	all := bytes.HasPrefix(rows[0].Key, s.want) && bytes.HasPrefix(rows[len(rows)-1].Key, s.want)
	for n < len(rows) && len(rows[n].Key) >= least && (all || bytes.HasPrefix(rows[n].Key, s.want)) {
		n++
	}
	return n
}

// load ensures that an unreturned row is loaded, or sets done.
func (s *OrderedRows) load() error {
	if s.done || s.at < len(s.rows) {
		return nil
	}
	s.room = record.Room(s.room)
	n, err := s.it.NextBatch(s.room)
	s.rows, s.at = s.room[:n], 0
	s.wait.Set(s.rows)
	if err != nil {
		s.done = true
		if err == io.EOF {
			return nil
		}
	}
	return err
}

// ensureValues ensures that the returned rows have their values.
func (s *OrderedRows) ensureValues() error {
	if s.at <= s.wait.Here {
		return nil
	}
	return s.wait.Reload()
}

// skip passes a row to stray.
func (s *OrderedRows) skip() error {
	s.at++
	if err := s.ensureValues(); err != nil {
		return err
	}
	row, class := s.rows[s.at-1], record.Orphan
	if _, ok := s.order.Compare(row.Key, s.want); !ok {
		class = record.Malformed
	}
	s.stray(class, row.Key, row.Value, s.it.PlaceAt(s.at-1))
	return nil
}

// Ended implements RowSet.
func (s *OrderedRows) Ended() bool {
	if s.done || s.at >= len(s.rows) {
		return false
	}
	c, ok := s.order.Compare(s.rows[s.at].Key, s.want)
	return ok && c > 0
}

// Released implements RowSet.
func (s *OrderedRows) Released() bool { return !s.done && s.wait.Here < len(s.wait.Rows) }

// PlaceAt returns the place of row i of the last batch.
func (s *OrderedRows) PlaceAt(i int) record.Place { return s.it.PlaceAt(s.start + i) }

// Finish passes the remaining rows to stray.
func (s *OrderedRows) Finish() error {
	for {
		if err := s.load(); err != nil || s.done {
			return err
		}
		if err := s.skip(); err != nil {
			return err
		}
	}
}

// Tally adds the counts of the rows read so far to t.
func (s *OrderedRows) Tally(t *record.Tally) { s.it.Tally(t) }

// Close closes the iterator.
func (s *OrderedRows) Close() error { return s.it.Close() }
