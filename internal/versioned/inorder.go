package versioned

import (
	"bytes"
	"io"

	"kvferry/format"
	"kvferry/internal/lane"
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
	stray lane.Stray
	room  []store.Row
	rows  []store.Row // read in one go
	at    int         // the next of them to hand out
	start int         // of the last batch
	want  []byte      // the prefix that rows are wanted of
	done  bool
}

// NewOrderedRows walks the rows of an iterator, which it closes.
func NewOrderedRows(it store.Iterator, o *InOrder, stray lane.Stray) *OrderedRows {
	return &OrderedRows{it: store.Batched(it), order: o, stray: stray, room: make([]store.Row, batchLen), want: o.AppendPrefix(nil, nil)}
}

// Seek moves to the rows of a user key.
func (s *OrderedRows) Seek(key []byte) error {
	s.want = s.order.AppendPrefix(s.want[:0], key)
	for {
		if err := s.load(); err != nil || s.done {
			return err
		}
		if c, ok := s.order.Compare(s.rows[s.at].Key, s.want); ok && c >= 0 {
			return nil
		}
		s.skip()
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
			return s.rows[s.start:s.at], len(s.want), nil
		}
		if _, ok := s.order.Compare(s.rows[s.at].Key, s.want); ok {
			return nil, 0, nil
		}
		s.skip()
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
	if err != nil {
		s.done = true
		if err == io.EOF {
			return nil
		}
	}
	return err
}

// skip hands a row to stray.
func (s *OrderedRows) skip() {
	row, class := s.rows[s.at], record.Orphan
	if _, ok := s.order.Compare(row.Key, s.want); !ok {
		class = record.Malformed
	}
	s.stray(class, row.Key, row.Value, s.it.PlaceAt(s.at))
	s.at++
}

// PlaceAt says where row i of the last batch stands.
func (s *OrderedRows) PlaceAt(i int) record.Place { return s.it.PlaceAt(s.start + i) }

// Finish hands the rows that are left to stray.
func (s *OrderedRows) Finish() error {
	for {
		if err := s.load(); err != nil || s.done {
			return err
		}
		s.skip()
	}
}

// Tally takes the counts of the rows read so far.
func (s *OrderedRows) Tally(t *record.Tally) { s.it.Tally(t) }

// Close closes the iterator.
func (s *OrderedRows) Close() error { return s.it.Close() }
