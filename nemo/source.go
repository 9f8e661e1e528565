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
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// source is an open dataset.
type source struct {
	dataset.Source[*typeStore]
	format nemoFormat
	dir    string
}

// typeStore is one of the five stores.
type typeStore struct {
	family   *family
	name     string // in the ledger and in findings: "hash", "db0/hash"
	store    store.Store
	keyspace store.Keyspace
	data     *lane.Directory // lanes of data rows; nil for strings
	index    *lane.Directory // lanes of zset index rows
}

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
	slices.SortFunc(s.DBs, func(a, b *dataset.Database[*typeStore]) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// openDB opens the stores of one database; it returns false when there are none.
func (s *source) openDB(ctx context.Context, name, dir string, o *format.OpenOptions) (bool, error) {
	db := &dataset.Database[*typeStore]{Name: name, Dirs: []string{dir}}
	s.DBs = append(s.DBs, db)
	var missing []string
	for i := range families {
		if dataset.Passed(s.dir, filepath.Join(dir, families[i].dir), name, families[i].typ, o) {
			continue
		}
		ts, err := openStore(ctx, s.dir, dir, &families[i], o)
		if err != nil {
			return false, err
		}
		if ts == nil {
			missing = append(missing, filepath.Join(dir, families[i].dir))
			continue
		}
		db.Stores = append(db.Stores, ts)
	}
	if len(missing) == len(families) {
		s.DBs = s.DBs[:len(s.DBs)-1]
		return false, nil
	}
	dataset.ReportMissing(o, name, missing)
	return true, nil
}

// openStore opens the store of one type, nil when it is not there.
func openStore(ctx context.Context, root, dir string, fam *family, o *format.OpenOptions) (*typeStore, error) {
	rel := filepath.Join(dir, fam.dir)
	st, err := dataset.OpenStore(ctx, root, rel, o)
	if st == nil {
		return nil, err
	}
	ts := &typeStore{family: fam, name: filepath.ToSlash(rel), store: st}
	if ts.keyspace, err = onlyKeyspace(filepath.Join(root, rel), st); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	ts.setLanes()
	return ts, nil
}

func onlyKeyspace(dir string, st store.Store) (store.Keyspace, error) {
	all := st.Keyspaces()
	if len(all) != 1 || all[0].Name() != "default" {
		return nil, fmt.Errorf("%s: has %d column families, nemo's stores have one, default", dir, len(all))
	}
	if c := all[0].Comparer(); !c.IsBytewise() {
		return nil, fmt.Errorf("%s: is ordered by %s, nemo's stores are bytewise", dir, c.Name)
	}
	return all[0], nil
}

func (ts *typeStore) setLanes() {
	f := ts.family
	if f.data != 0 {
		ts.data = lane.NewDirectory(ts.keyspace, layout(f.data, f.rest))
	}
	if f.index != 0 {
		ts.index = lane.NewDirectory(ts.keyspace, layout(f.index, scoreLen))
	}
}

// Types returns the type whose records the store holds.
func (ts *typeStore) Types() record.TypeSet { return record.Of(ts.family.typ) }

// Size returns the bytes of the store.
func (ts *typeStore) Size() int64 { return ts.keyspace.Size() }

// Keyspaces returns the only keyspace.
func (ts *typeStore) Keyspaces() []format.Keyspace {
	return []format.Keyspace{{Name: ts.family.dir, Keyspace: ts.keyspace}}
}

// Close closes the store.
func (ts *typeStore) Close() error { return ts.store.Close() }

// Format returns nemo.
func (s *source) Format() format.Format { return s.format }

func (s *source) database(name string) *dataset.Database[*typeStore] { return s.Database(name) }

// storesOf returns the stores of some types in dump order.
func (s *source) storesOf(name string, t record.TypeSet) []*typeStore { return s.StoresOf(name, t) }

// Records returns a reader of the types' records, merged.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.storesOf(db, t)
	return dataset.Merge(stores, func(ts *typeStore) (record.Reader, error) {
		return newPass(ctx, db, ts, span, e, len(stores)).open()
	})
}

// Extra lists the info files of bgsave.
func (s *source) Extra() []string {
	dirs := []string{""}
	for _, db := range s.DBs {
		dirs = append(dirs, db.Dirs...)
	}
	return dataset.InfoFiles(s.dir, slices.Compact(dirs))
}
