package nemo

import (
	"context"
	"errors"
	"path/filepath"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// source is an open dataset.
type source struct{ versioned.Source }

// open opens all databases of a directory.
func open(ctx context.Context, f nemoFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{versioned.NewSource(f, dir)}
	s.Share = share
	err := s.OpenDBs(o, "kv, hash, list, set and zset in it or in db0, db1, …",
		func(name, dir string) (bool, error) { return s.openDB(ctx, name, dir, o) })
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openDB opens the stores of one database; it returns false if the database has no stores.
func (s *source) openDB(ctx context.Context, name, dir string, o *format.OpenOptions) (bool, error) {
	db := &versioned.Database{Name: name, Dirs: []string{dir}}
	s.DBs = append(s.DBs, db)
	var missing []dataset.Lack
	for i := range families {
		if dataset.Passed(s.Dir, disk.Join(dir, families[i].dir), name, families[i].typ, o) {
			continue
		}
		st, err := families[i].open(ctx, s.Dir, dir, name, o)
		if err != nil {
			return false, err
		}
		if st == nil {
			missing = append(missing, dataset.Lack{Dir: disk.Join(dir, families[i].dir), Type: families[i].typ})
			continue
		}
		db.Stores = append(db.Stores, st)
	}
	if len(missing) == len(families) {
		s.DBs = s.DBs[:len(s.DBs)-1]
		return false, nil
	}
	dataset.ReportMissing(s.Dir, name, missing, o)
	return true, nil
}

// orders are the column families of a store.
var orders = map[string]*store.Comparer{keyspace: &store.Bytewise}

// open opens the store of one type; nil if it does not exist.
func (f *family) open(ctx context.Context, root, dir, db string, o *format.OpenOptions) (*versioned.Store, error) {
	rel := disk.Join(dir, f.dir)
	st, _, err := versioned.OpenStore(ctx, root, rel, db, f.layout, orders, o)
	if st != nil {
		st.Named(func(string) (long, short string) { return filepath.ToSlash(rel), f.dir })
	}
	return st, err
}

// share is the part of a pass's memory for a store when n stores are read in parallel. Lists get most of it,
// since a whole list is held at a time; other types need memory only if a zset's index is damaged.
func share(memory int64, st *versioned.Store, n int) int64 {
	switch {
	case n == 1:
		return memory
	case st.Types().Has(record.List):
		return memory / 4 * 3
	}
	return memory / 4
}

// LiveVersion reports whether a data row is live: its version must be at least the meta row's.
func (s *source) LiveVersion(meta, row int64) bool { return row >= meta }
