package versioned

import (
	"bytes"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/keylanes"
	"kvferry/record"
	"kvferry/store"
)

// InOrder is how raw keys begin that ascend by user key, whatever its length.
type InOrder struct {
	// AppendPrefix appends what the raw keys of the rows of a user key begin with.
	AppendPrefix func(dst, key []byte) []byte
	// Compare compares the user key of a raw key with that of a prefix; ok is false for a raw key without one, or
	// with less behind it than MinRest.
	Compare func(raw, prefix []byte) (c int, ok bool)
	MinRest int
	// Open opens the rows of a span of user keys, where these do not lie in one range; keys are then ordered bytewise. nil: they do.
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

// RowSet is what data rows are read through. User keys are asked for in ascending order; each row is handed out once, by
// Batch or as a stray.
type RowSet interface {
	Seek(key []byte) error
	// Batch returns some of the next rows of the user key and how many bytes of their keys the rest follows; no rows after
	// the last. They live until the next call of any method.
	Batch(limit int) (rows []store.Row, skip int, err error)
	PlaceAt(i int) record.Place
	// Finish hands the rows that are left to stray.
	Finish() error
	Tally(*record.Tally)
	Close() error
}

// OrderedRows walks a keyspace that is in the order of user keys.
type OrderedRows struct {
	it    store.Batcher
	order *InOrder
	stray keylanes.Stray
	room  []store.Row
	rows  []store.Row   // read in one go
	wait  store.Waiting // has them
	at    int           // the next of them to hand out
	start int           // of the last batch
	want  []byte        // the prefix that rows are wanted of
	done  bool
}

// NewOrderedRows walks the rows of an iterator, which it closes.
func NewOrderedRows(it store.Iterator, o *InOrder, stray keylanes.Stray) *OrderedRows {
	b := store.Batched(it)
	return &OrderedRows{it: b, order: o, stray: stray, wait: store.Wait(b), room: make([]store.Row, batchLen), want: o.AppendPrefix(nil, nil)}
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

// Batch implements RowSet.
func (s *OrderedRows) Batch(limit int) (rows []store.Row, skip int, err error) {
	for {
		if err := s.load(); err != nil || s.done {
			return nil, 0, err
		}
		if n := s.wanted(s.rows[s.at:min(len(s.rows), s.at+limit)]); n > 0 {
			s.start, s.at = s.at, s.at+n
			return s.rows[s.start:s.at], len(s.want), s.here()
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

// wanted returns how many of the first rows are well-formed ones of the user key. Rows ascend: between two that start alike all
// do.
func (s *OrderedRows) wanted(rows []store.Row) (n int) {
	least := len(s.want) + s.order.MinRest
	all := bytes.HasPrefix(rows[0].Key, s.want) && bytes.HasPrefix(rows[len(rows)-1].Key, s.want)
	for n < len(rows) && len(rows[n].Key) >= least && (all || bytes.HasPrefix(rows[n].Key, s.want)) {
		n++
	}
	return n
}

// load makes sure that there is a row that was not handed out.
func (s *OrderedRows) load() error {
	if s.done || s.at < len(s.rows) {
		return nil
	}
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

// here makes sure that the rows that were handed out have their values.
func (s *OrderedRows) here() error {
	if s.at <= s.wait.Here {
		return nil
	}
	return s.wait.Reload()
}

// skip hands a row to stray.
func (s *OrderedRows) skip() error {
	s.at++
	if err := s.here(); err != nil {
		return err
	}
	row, class := s.rows[s.at-1], record.Orphan
	if _, ok := s.order.Compare(row.Key, s.want); !ok {
		class = record.Malformed
	}
	s.stray(class, row.Key, row.Value, s.it.PlaceAt(s.at-1))
	return nil
}

// PlaceAt says where row i of the last batch stands.
func (s *OrderedRows) PlaceAt(i int) record.Place { return s.it.PlaceAt(s.start + i) }

// Finish hands the rows that are left to stray.
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

// Tally takes the counts of the rows read so far.
func (s *OrderedRows) Tally(t *record.Tally) { s.it.Tally(t) }

// Close closes the iterator.
func (s *OrderedRows) Close() error { return s.it.Close() }
