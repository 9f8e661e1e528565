package nemo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// infoFile is what Pika's bgsave leaves beside the stores.
const infoFile = "info"

// source is an open dataset.
type source struct {
	format nemoFormat
	dir    string
	layout format.Layout
	dbs    []*database
}

// database is the five stores of one database.
type database struct {
	name   string
	dir    string // in the dataset, "" when its stores lie in the root
	stores [record.NumTypes]*typeStore
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
	s := &source{format: f, dir: dir, layout: format.LayoutFlat}
	if err := s.openAll(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *source) openAll(ctx context.Context, o *format.OpenOptions) error {
	flat, err := s.openDB(ctx, "0", "", o)
	if err != nil || flat {
		return err
	}
	s.layout = format.LayoutDB
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("open nemo database: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !isDB(e.Name()) {
			continue
		}
		if _, err := s.openDB(ctx, strings.TrimPrefix(e.Name(), "db"), e.Name(), o); err != nil {
			return err
		}
	}
	if len(s.dbs) == 0 {
		return fmt.Errorf("%s: no nemo database: want RocksDB directories kv, hash, list, set and zset in it or in db0, db1, …", s.dir)
	}
	slices.SortFunc(s.dbs, func(a, b *database) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	return nil
}

// openDB opens the stores of one database; it returns false when there are none.
func (s *source) openDB(ctx context.Context, name, dir string, o *format.OpenOptions) (bool, error) {
	db := &database{name: name, dir: dir}
	var missing []string
	for i := range families {
		ts, err := openStore(ctx, s.dir, dir, &families[i], o)
		if err != nil {
			return false, errors.Join(err, db.close())
		}
		if ts == nil {
			missing = append(missing, filepath.Join(dir, families[i].dir))
			continue
		}
		db.stores[families[i].typ] = ts
	}
	if len(missing) == len(families) {
		return false, nil
	}
	if len(missing) > 0 && o.Options.Report != nil {
		o.Options.Report(record.Finding{Kind: FindMissingStore, Severity: record.Warning, DB: name,
			Place: record.Place{Level: -1}, Detail: strings.Join(missing, ", ") +
				" not found; the engine always has all five, so data may have been left behind"})
	}
	s.dbs = append(s.dbs, db)
	return true, nil
}

// openStore opens the store of one type, nil when it is not there.
func openStore(ctx context.Context, root, dir string, fam *family, o *format.OpenOptions) (*typeStore, error) {
	rel := filepath.Join(dir, fam.dir)
	opts := o.Options
	if o.WALDir != "" {
		opts.WALDir = filepath.Join(o.WALDir, rel)
	}
	full := filepath.Join(root, rel)
	st, err := o.Store(ctx, full, &opts)
	if err != nil {
		if (errors.Is(err, store.ErrNotStore) || errors.Is(err, fs.ErrNotExist)) && isAbsent(full) {
			return nil, nil
		}
		return nil, err
	}
	ts := &typeStore{family: fam, name: filepath.ToSlash(rel), store: st}
	if ts.keyspace, err = onlyKeyspace(full, st); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	ts.setLanes()
	return ts, nil
}

// isAbsent reports whether a directory is not there or empty; one that holds files which are no database
// is not absent, it is damaged.
func isAbsent(dir string) bool {
	entries, err := os.ReadDir(dir)
	return len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
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
		ts.data.MaxOpen, ts.index.MaxOpen = lane.MaxOpen/2, lane.MaxOpen/2
	}
}

// Format returns nemo.
func (s *source) Format() format.Format { return s.format }

// Layout says where the databases lie.
func (s *source) Layout() format.Layout { return s.layout }

// Databases returns "0" for a flat layout and the numbers of the directories otherwise.
func (s *source) Databases() []string {
	out := make([]string, len(s.dbs))
	for i, db := range s.dbs {
		out[i] = db.name
	}
	return out
}

// Sorted returns true: lanes yield records in order.
func (s *source) Sorted() bool { return true }

// Types returns the types whose stores are there.
func (s *source) Types(db string) record.TypeSet {
	var t record.TypeSet
	for _, ts := range s.storesOf(db, allTypes) {
		t |= record.Of(ts.family.typ)
	}
	return t
}

// Size returns the bytes of the types' stores.
func (s *source) Size(db string, t record.TypeSet) int64 {
	var n int64
	for _, ts := range s.storesOf(db, t) {
		n += ts.keyspace.Size()
	}
	return n
}

func (s *source) database(name string) *database {
	for _, db := range s.dbs {
		if db.name == name {
			return db
		}
	}
	return nil
}

// storesOf returns the stores of some types in dump order.
func (s *source) storesOf(name string, t record.TypeSet) []*typeStore {
	db := s.database(name)
	if db == nil {
		return nil
	}
	var out []*typeStore
	for _, ts := range db.stores {
		if ts != nil && t.Has(ts.family.typ) {
			out = append(out, ts)
		}
	}
	return out
}

// Records returns a reader of the types' records, merged.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.storesOf(db, t)
	var readers []record.Reader
	for _, ts := range stores {
		p := newPass(ctx, db, ts, span, e, len(stores))
		r, err := p.open()
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

// Keyspaces returns the five stores of each database.
func (s *source) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, db := range s.dbs {
		for _, ts := range s.storesOf(db.name, allTypes) {
			out = append(out, format.Keyspace{DB: db.name, Name: ts.family.dir, Keyspace: ts.keyspace})
		}
	}
	return out
}

// Extra lists the info files of bgsave.
func (s *source) Extra() []string {
	var out []string
	for _, dir := range append([]string{""}, s.dirs()...) {
		rel := filepath.Join(dir, infoFile)
		if st, err := os.Stat(filepath.Join(s.dir, rel)); err == nil && st.Mode().IsRegular() {
			out = append(out, filepath.ToSlash(rel))
		}
	}
	return out
}

// dirs returns the databases' directories below the root.
func (s *source) dirs() []string {
	var out []string
	for _, db := range s.dbs {
		if db.dir != "" {
			out = append(out, db.dir)
		}
	}
	return out
}

// Close closes all stores.
func (s *source) Close() error {
	var errs []error
	for _, db := range s.dbs {
		errs = append(errs, db.close())
	}
	s.dbs = nil
	return errors.Join(errs...)
}

func (db *database) close() error {
	var errs []error
	for _, ts := range db.stores {
		if ts != nil {
			errs = append(errs, ts.store.Close())
		}
	}
	return errors.Join(errs...)
}
