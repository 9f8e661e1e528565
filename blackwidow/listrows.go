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
// User keys are asked for in ascending order; each row is handed out once, by Next or as a stray.
type rowSet interface {
	Seek(key []byte) error
	Next() (rest, value []byte, ok bool, err error)
	Raw() []byte
	Place() record.Place
	Finish() error
	Tally(*record.Tally)
	Close() error
}

// listRows walks lists/data_cf, which is ordered by user key.
type listRows struct {
	it         store.Iterator
	layout     *lane.Layout
	stray      lane.Stray
	key, value []byte // of the row it stands at, whole and raw
	want       []byte // klen and user key that rows are wanted of
	ready      bool   // stands at a row
	taken      bool   // which was handed out
	done       bool
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
	return &listRows{it: it, layout: l, stray: stray}, nil
}

// Seek moves to the rows of a user key.
func (s *listRows) Seek(key []byte) error {
	s.want = append(s.layout.AppendPrefix(s.want[:0], len(key)), key...)
	for {
		if err := s.load(); err != nil || s.done {
			return err
		}
		if user, ok := s.layout.UserKey(s.key); ok && bytes.Compare(user, key) >= 0 {
			return nil
		}
		s.skip()
	}
}

// Next returns the next row of the user key: what follows it, and the value.
func (s *listRows) Next() (rest, value []byte, ok bool, err error) {
	for {
		if err := s.load(); err != nil || s.done {
			return nil, nil, false, err
		}
		n := len(s.want)
		if len(s.key) >= n+s.layout.MinRest && bytes.Equal(s.key[:n], s.want) {
			s.taken = true
			return s.key[n:], s.value, true, nil
		}
		if _, ok := s.layout.UserKey(s.key); ok {
			return nil, nil, false, nil
		}
		s.skip()
	}
}

// load makes sure that there is a row that was not handed out.
func (s *listRows) load() (err error) {
	if s.done || s.ready && !s.taken {
		return nil
	}
	s.key, s.value, err = s.it.Next()
	s.ready, s.taken = err == nil, false
	if err != nil {
		s.done, s.key, s.value = true, nil, nil
		if err == io.EOF {
			return nil
		}
	}
	return err
}

// skip hands the row to stray.
func (s *listRows) skip() {
	class := record.Orphan
	if _, ok := s.layout.UserKey(s.key); !ok {
		class = record.Malformed
	}
	s.stray(class, s.key, s.value, s.it.Place())
	s.taken = true
}

// Raw returns the raw key of the row that Next returned last.
func (s *listRows) Raw() []byte { return s.key }

// Place says where that row stands.
func (s *listRows) Place() record.Place { return s.it.Place() }

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
