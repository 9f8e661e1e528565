package dataset

import (
	"errors"
	"fmt"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// Store is an open store.
type Store interface {
	// Types returns the types of its records.
	Types() record.TypeSet
	// Size returns the bytes of its keyspaces.
	Size() int64
	// Keyspaces are named within the database; DB is not set.
	Keyspaces() []format.Keyspace
	// Sample returns about n user keys of each keyspace, as views.
	Sample(n int) ([]store.Weighted, error)
	Close() error
}

// Source is an open dataset. It is the part of a format.Source that does not look at rows.
type Source[S Store] struct {
	Flat bool // the only database lies in the root
	DBs  []*Database[S]
}

// Database is one database of a source.
type Database[S Store] struct {
	Name   string
	Dirs   []string // directories of its stores in the dataset, "" for the root
	Stores []S
}

// Layout returns the layout of the databases' directories.
func (s *Source[S]) Layout() format.Layout {
	if s.Flat {
		return format.LayoutFlat
	}
	return format.LayoutDB
}

// Databases returns "0" for a flat layout and the numbers of the directories otherwise.
func (s *Source[S]) Databases() []string {
	out := make([]string, len(s.DBs))
	for i, db := range s.DBs {
		out[i] = db.Name
	}
	return out
}

// Sorted returns true: meta rows are in order, and so are data rows within each lane.
func (s *Source[S]) Sorted() bool { return true }

// Types returns the types of the existing stores.
func (s *Source[S]) Types(db string) record.TypeSet {
	var t record.TypeSet
	for _, st := range s.StoresOf(db, record.AllTypes) {
		t |= st.Types()
	}
	return t
}

// Size returns the bytes of the stores that hold the types; of a store shared with other types, their share.
func (s *Source[S]) Size(db string, t record.TypeSet) int64 {
	var n int64
	for _, st := range s.StoresOf(db, t) {
		own := st.Types()
		n += st.Size() * int64(len((t & own).Types())) / int64(len(own.Types()))
	}
	return n
}

// Split cuts the user keys into n spans of about equal bytes, estimated from sampled keys.
func (s *Source[S]) Split(db string, t record.TypeSet, n int) ([]format.Span, error) {
	if n <= 1 {
		return []format.Span{{}}, nil
	}
	keys, err := s.Weigh(db, t, n*SamplesPerSpan)
	if err != nil {
		return nil, err
	}
	return Cut(keys, n), nil
}

// Weigh samples about n user keys of each store.
func (s *Source[S]) Weigh(db string, t record.TypeSet, n int) ([]store.Weighted, error) {
	if s.Database(db) == nil {
		return nil, fmt.Errorf("no database %q: have %q", db, s.Databases())
	}
	var keys []store.Weighted
	for _, st := range s.StoresOf(db, t) {
		samples, err := st.Sample(n)
		if err != nil {
			return nil, err
		}
		keys = append(keys, samples...)
	}
	return keys, nil
}

// Database returns the database of a name, or nil if it does not exist.
func (s *Source[S]) Database(name string) *Database[S] {
	for _, db := range s.DBs {
		if db.Name == name {
			return db
		}
	}
	return nil
}

// StoresOf returns the stores of some types in the order in which they were opened.
func (s *Source[S]) StoresOf(name string, t record.TypeSet) []S {
	db := s.Database(name)
	if db == nil {
		return nil
	}
	var out []S
	for _, st := range db.Stores {
		if t&st.Types() != 0 {
			out = append(out, st)
		}
	}
	return out
}

// Keyspaces returns the keyspaces of all databases.
func (s *Source[S]) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, db := range s.DBs {
		for _, st := range db.Stores {
			for _, ks := range st.Keyspaces() {
				ks.DB = db.Name
				out = append(out, ks)
			}
		}
	}
	return out
}

// Close closes all stores.
func (s *Source[S]) Close() error {
	var errs []error
	for _, db := range s.DBs {
		for _, st := range db.Stores {
			errs = append(errs, st.Close())
		}
	}
	s.DBs = nil
	return errors.Join(errs...)
}

// Merge opens a reader of each store and merges their records.
func Merge[S Store](stores []S, open func(S) (record.Reader, error)) (record.Reader, error) {
	var readers []record.Reader
	for _, st := range stores {
		r, err := open(st)
		if err != nil {
			for _, r := range readers {
				err = errors.Join(err, r.Close())
			}
			return nil, err
		}
		readers = append(readers, r)
	}
	return record.Merge(readers...), nil
}

// Concat reads the records of one store after the other.
func Concat[S Store](stores []S, open func(S) (record.Reader, error)) record.Reader {
	readers := make([]func() (record.Reader, error), len(stores))
	for i, st := range stores {
		readers[i] = func() (record.Reader, error) { return open(st) }
	}
	return record.Concat(readers...)
}
