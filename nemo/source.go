package nemo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/disk"
	"kvferry/internal/versioned"
	"kvferry/record"
	"kvferry/store"
)

// source is an open dataset.
type source struct {
	dataset.Source[*versioned.Store]
	format nemoFormat
	dir    string
}

type database = dataset.Database[*versioned.Store]

// open opens all databases of a directory.
func open(ctx context.Context, f nemoFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{format: f, dir: dir}
	if err := s.openAll(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *source) openAll(ctx context.Context, o *format.OpenOptions) error {
	var err error
	if s.Flat, err = s.openDB(ctx, "0", "", o); err != nil || s.Flat {
		return err
	}
	entries, err := disk.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("open nemo database: %w", err)
	}
	for _, e := range entries {
		if !dataset.IsDB(e.Name()) {
			continue
		}
		if st, err := disk.Stat(filepath.Join(s.dir, e.Name())); err != nil || !st.IsDir() { // a link leads to one, too
			continue
		}
		if _, err := s.openDB(ctx, strings.TrimPrefix(e.Name(), "db"), e.Name(), o); err != nil {
			return err
		}
	}
	if len(s.DBs) == 0 {
		return fmt.Errorf("%s: no nemo database: want RocksDB directories kv, hash, list, set and zset in it or in db0, db1, …", s.dir)
	}
	slices.SortFunc(s.DBs, func(a, b *database) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// openDB opens the stores of one database; it returns false when there are none.
func (s *source) openDB(ctx context.Context, name, dir string, o *format.OpenOptions) (bool, error) {
	db := &database{Name: name, Dirs: []string{dir}}
	s.DBs = append(s.DBs, db)
	var missing []string
	for i := range families {
		if dataset.Passed(s.dir, filepath.Join(dir, families[i].dir), name, families[i].typ, o) {
			continue
		}
		st, err := families[i].open(ctx, s.dir, dir, name, o)
		if err != nil {
			return false, err
		}
		if st == nil {
			missing = append(missing, filepath.Join(dir, families[i].dir))
			continue
		}
		db.Stores = append(db.Stores, st)
	}
	if len(missing) == len(families) {
		s.DBs = s.DBs[:len(s.DBs)-1]
		return false, nil
	}
	dataset.ReportMissing(o, name, missing)
	return true, nil
}

// open opens the store of one type, nil when it is not there.
func (f *family) open(ctx context.Context, root, dir, db string, o *format.OpenOptions) (*versioned.Store, error) {
	rel := filepath.Join(dir, f.dir)
	st, err := dataset.OpenStore(ctx, root, rel, o)
	if st == nil {
		return nil, err
	}
	ks, err := onlyKeyspace(filepath.Join(root, rel), st)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s := versioned.NewStore(f.layout, db, rel, func(string) store.Keyspace { return ks }, st)
	s.Named(func(string) (long, short string) { return filepath.ToSlash(rel), f.dir })
	return s, nil
}

func onlyKeyspace(dir string, st store.Store) (store.Keyspace, error) {
	all := st.Keyspaces()
	if len(all) != 1 || all[0].Name() != keyspace {
		return nil, fmt.Errorf("%s: has %d column families, nemo's stores have one, default", dir, len(all))
	}
	if c := all[0].Comparer(); !c.IsBytewise() {
		return nil, fmt.Errorf("%s: is ordered by %s, nemo's stores are bytewise", dir, c.Name)
	}
	return all[0], nil
}

// Format returns nemo.
func (s *source) Format() format.Format { return s.format }

// Records returns a reader of the types' records, merged.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.Database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.StoresOf(db, t)
	return dataset.Merge(stores, func(st *versioned.Store) (record.Reader, error) {
		return st.Records(ctx, t, span, e, share(e, st, len(stores)))
	})
}

// share is the part of a pass's memory that a store has when n are read side by side: most is for lists, of which one is
// held at a time; others need theirs where a zset's index is damaged.
func share(e *format.Env, st *versioned.Store, n int) int64 {
	memory := versioned.Share(e, 1)
	switch {
	case n == 1:
		return memory
	case st.Types().Has(record.List):
		return memory / 4 * 3
	}
	return memory / 4
}

// DeadDatabases are all databases: they are directories.
func (s *source) DeadDatabases() ([]string, error) { return s.Databases(), nil }

// DeadRecords yields records whose delete left their rows behind.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	if s.Database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.StoresOf(db, t)
	return dataset.Merge(stores, func(st *versioned.Store) (record.Reader, error) {
		return st.DeadRecords(ctx, t, span, e, share(e, st, len(stores)), tell)
	})
}

// LiveVersion reports whether a data row counts: its version must not be older than the meta row's.
func (s *source) LiveVersion(meta, row int64) bool { return row >= meta }

// Where lists the raw ranges of a user key: its meta row and its data rows.
func (s *source) Where(db string, key []byte) []format.Range {
	var out []format.Range
	for _, st := range s.StoresOf(db, allTypes) {
		out = append(out, st.Where(key)...)
	}
	return out
}

// Extra lists the info files of bgsave.
func (s *source) Extra() []string {
	dirs := []string{""}
	for _, db := range s.DBs {
		dirs = append(dirs, db.Dirs...)
	}
	return dataset.InfoFiles(s.dir, slices.Compact(dirs))
}
