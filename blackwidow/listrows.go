package blackwidow

import (
	"bytes"
	"errors"
	"io"

	"kvferry/format"
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// rowSet is what data rows are read through: the lanes of a bytewise column family, or the rows of lists.
// User keys are asked for in ascending order; each row is handed out once, by Batch or as a stray.
type rowSet interface {
	Seek(key []byte) error
	Batch(limit int) (rows []store.Row, skip int, err error)
	PlaceAt(i int) record.Place
	Finish() error
	Tally(*record.Tally)
	Close() error
}

// listRows walks lists/data_cf, which is ordered by user key.
type listRows struct {
	it     store.Batcher
	layout *lane.Layout
	stray  lane.Stray
	room   []store.Row
	rows   []store.Row // read in one go
	at     int         // the next of them to hand out
	start  int         // of the last batch
	want   []byte      // klen and user key that rows are wanted of
	done   bool
}

func openListRows(ts *typeStore, s format.Span, stray lane.Stray) (*listRows, error) {
	l := &ts.family.dataRow
	var lo, hi []byte
	if s.Lo != nil {
		lo = append(l.AppendPrefix(nil, len(s.Lo)), s.Lo...)
	}
	if s.Hi != nil {
		hi = append(l.AppendPrefix(nil, len(s.Hi)), s.Hi...)
	}
	it, err := ts.data.keyspace.Rows(lo, hi)
	if err != nil {
		return nil, err
	}
	return &listRows{it: store.Batched(it), layout: l, stray: stray, room: make([]store.Row, batchLen)}, nil
}

// Seek moves to the rows of a user key.
func (s *listRows) Seek(key []byte) error {
	s.want = append(s.layout.AppendPrefix(s.want[:0], len(key)), key...)
	for {
		if err := s.load(); err != nil || s.done {
			return err
		}
		if user, ok := s.layout.UserKey(s.rows[s.at].Key); ok && bytes.Compare(user, key) >= 0 {
			return nil
		}
		s.skip()
	}
}

// Batch returns some of the next rows of the user key, at most limit, and how many bytes of their keys what
// follows the user key comes after; no rows after the last. They live until the next call of any method.
func (s *listRows) Batch(limit int) (rows []store.Row, skip int, err error) {
	for {
		if err := s.load(); err != nil || s.done {
			return nil, 0, err
		}
		n := 0
		for n < limit && s.at+n < len(s.rows) && s.wanted(s.rows[s.at+n].Key) {
			n++
		}
		if n > 0 {
			s.start, s.at = s.at, s.at+n
			return s.rows[s.start:s.at], len(s.want), nil
		}
		if _, ok := s.layout.UserKey(s.rows[s.at].Key); ok {
			return nil, 0, nil
		}
		s.skip()
	}
}

// wanted reports whether a raw key is a well-formed one of the user key.
func (s *listRows) wanted(raw []byte) bool {
	return len(raw) >= len(s.want)+s.layout.MinRest && bytes.HasPrefix(raw, s.want)
}

// load makes sure that there is a row that was not handed out.
func (s *listRows) load() error {
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
func (s *listRows) skip() {
	row, class := s.rows[s.at], record.Orphan
	if _, ok := s.layout.UserKey(row.Key); !ok {
		class = record.Malformed
	}
	s.stray(class, row.Key, row.Value, s.it.PlaceAt(s.at))
	s.at++
}

// PlaceAt says where row i of the last batch stands.
func (s *listRows) PlaceAt(i int) record.Place { return s.it.PlaceAt(s.start + i) }

// Finish hands the rows that are left to stray.
func (s *listRows) Finish() error {
	for {
		if err := s.load(); err != nil || s.done {
			return err
		}
		s.skip()
	}
}

// Tally takes the counts of the rows read so far.
func (s *listRows) Tally(t *record.Tally) { s.it.Tally(t) }

// Close closes the store's iterator.
func (s *listRows) Close() error { return s.it.Close() }

// closeSets closes those of some sets that are open.
func closeSets(sets ...rowSet) error {
	var errs []error
	for _, s := range sets {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
