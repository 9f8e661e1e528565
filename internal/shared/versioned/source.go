package versioned

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// Source is an open dataset of directories: the part of a format.Source that does not depend on the layout.
type Source struct {
	dataset.Source[*Store]
	Dir string
	// Share returns the memory of a store when n stores are read side by side; nil: equal shares.
	Share func(memory int64, s *Store, n int) int64
	// Home returns the store of a database in which the engine looks for a key, where a Judge accepts it; nil: in all of them.
	Home   func(db string, key []byte) *Store
	format format.Format
}

// Database is a database of a Source.
type Database = dataset.Database[*Store]

// NewSource returns a source without databases.
func NewSource(f format.Format, dir string) Source { return Source{format: f, Dir: dir} }

// OpenDBs opens the databases of a Pika server: one in the root of the dataset, or else those in db0, db1, …. open
// appends a database of that name in a subdirectory, and reports whether it exists. want describes its directories.
func (s *Source) OpenDBs(o *format.OpenOptions, want string, open func(name, dir string) (bool, error)) (err error) {
	if s.Flat, err = open("0", ""); err != nil || s.Flat {
		return err
	}
	engine := s.format.Name()
	dirs, err := dataset.Subdirs(s.Dir, dataset.IsDB)
	if err != nil {
		return fmt.Errorf("open %s database: %w", engine, err)
	}
	for _, dir := range dirs {
		if _, err := open(strings.TrimPrefix(dir, "db"), dir); err != nil {
			return err
		}
	}
	if len(s.DBs) == 0 {
		return fmt.Errorf("%s: not a %s database: want the RocksDB directories %s", s.Dir, engine, want)
	}
	s.ReportGaps(o, s.Dir, dirs)
	return nil
}

// Format returns the format.
func (s *Source) Format() format.Format { return s.format }

// Records returns a reader of the types' records, merged over the stores of a database.
func (s *Source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {
	return s.merged(db, t, e, func(st *Store, memory int64) (record.Reader, error) {
		return st.Records(ctx, t, span, e, memory)
	})
}

// Seeks returns the types whose elements are rows in the order of their names or indexes.
func (s *Source) Seeks() record.TypeSet {
	return record.Of(record.Hash, record.List, record.Set, record.ZSet)
}

// DeadDatabases returns all databases: they are directories.
func (s *Source) DeadDatabases() ([]string, error) { return s.Databases(), nil }

// DeadRecords yields deleted records whose rows still exist.
func (s *Source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	return s.merged(db, t, e, func(st *Store, memory int64) (record.Reader, error) {
		return st.DeadRecords(ctx, t, span, e, memory, tell)
	})
}

// merged merges the records of the types' stores, which share the memory. With AnyOrder each one has all of it.
func (s *Source) merged(db string, t record.TypeSet, e *format.Env,
	open func(*Store, int64) (record.Reader, error)) (record.Reader, error) {
	if s.Database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q: have %q", s.Dir, db, s.Databases())
	}
	stores := s.StoresOf(db, t)
	beside := len(stores)
	if e.AnyOrder {
		beside = 1
	}
	one := func(st *Store) (record.Reader, error) {
		if s.Share != nil {
			return open(st, s.Share(share(e, 1), st, beside))
		}
		return open(st, share(e, beside))
	}
	if e.AnyOrder {
		return dataset.Concat(stores, one), nil
	}
	return dataset.Merge(stores, one)
}

// Where lists the raw ranges of a user key in every store of a database: its meta row (or the whole row, for strings) and
// its data rows.
func (s *Source) Where(db string, key []byte) []format.Range {
	var out []format.Range
	for _, st := range s.StoresOf(db, record.AllTypes) {
		out = append(out, st.Where(key)...)
	}
	return out
}

// Extra lists the info files of bgsave.
func (s *Source) Extra() []string {
	dirs := []string{""}
	for _, db := range s.DBs {
		dirs = append(dirs, db.Dirs...)
	}
	slices.Sort(dirs)
	return dataset.InfoFiles(s.Dir, slices.Compact(dirs))
}

// OpenStore opens a store of a database at a path below root; nil if it does not exist. orders are the engine's column
// families; the engine refuses others and creates missing families. spaces are the existing families.
func OpenStore(ctx context.Context, root, rel, db string, l *Layout, orders map[string]*store.Comparer, o *format.OpenOptions) (
	s *Store, spaces map[string]store.Keyspace, err error) {

	st, err := dataset.OpenStore(ctx, root, rel, o)
	if st == nil {
		return nil, nil, err
	}
	spaces = map[string]store.Keyspace{}
	for _, ks := range st.Keyspaces() {
		if err := accept(disk.Join(root, rel), ks, orders[ks.Name()]); err != nil {
			return nil, nil, errors.Join(err, st.Close())
		}
		spaces[ks.Name()] = ks
	}
	return NewStore(l, db, rel, func(name string) store.Keyspace { return spaces[name] }, st), spaces, nil
}

// accept refuses a column family that differs from the engine's; want is nil if the engine has no such family.
func accept(dir string, ks store.Keyspace, want *store.Comparer) error {
	if want == nil {
		return fmt.Errorf("%s: has a column family %q, which the engine refuses to open", dir, ks.Name())
	}
	if got := ks.Comparer().Name; got != want.Name {
		return fmt.Errorf("%s: column family %s is ordered by %s, want %s", dir, ks.Name(), got, want.Name)
	}
	return nil
}
