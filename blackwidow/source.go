package blackwidow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// infoFile is what Pika's bgsave leaves beside the stores.
const infoFile = "info"

// source is an open dataset.
type source struct {
	format blackwidowFormat
	dir    string
	layout format.Layout
	dbs    []*database
}

// database is one database: five stores, or five for each partition.
type database struct {
	name   string
	dirs   []string // in the dataset: its own, "" for the root, and those of its partitions
	stores []*typeStore
}

// open opens all databases of a directory.
func open(ctx context.Context, f blackwidowFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{format: f, dir: dir, layout: format.LayoutFlat}
	opts := *o
	opts.Options.Comparers = Comparers()
	if err := s.openAll(ctx, &opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *source) openAll(ctx context.Context, o *format.OpenOptions) error {
	flat := &database{name: "0"}
	s.dbs = append(s.dbs, flat)
	if found, err := s.openHome(ctx, flat, "", o); err != nil || found {
		return err
	}
	s.layout, s.dbs = format.LayoutDB, nil
	dirs, err := subdirs(s.dir, isDB)
	if err != nil {
		return fmt.Errorf("open blackwidow database: %w", err)
	}
	for _, dir := range dirs {
		if err := s.openDB(ctx, dir, o); err != nil {
			return err
		}
	}
	if len(s.dbs) == 0 {
		return fmt.Errorf("%s: no blackwidow database: want RocksDB directories strings, hashes, lists, sets and zsets in it, "+
			"in db0, db1, … or in db0/0, db0/1, …", s.dir)
	}
	return nil
}

// openDB opens a database that has a directory of its own, partitioned or not.
func (s *source) openDB(ctx context.Context, dir string, o *format.OpenOptions) error {
	db := &database{name: strings.TrimPrefix(dir, "db")}
	s.dbs = append(s.dbs, db)
	found, err := s.openHome(ctx, db, dir, o)
	if err != nil || found {
		return err
	}
	parts, err := subdirs(filepath.Join(s.dir, dir), isNumber)
	if err != nil {
		return err
	}
	for _, p := range parts {
		in, err := s.openHome(ctx, db, path.Join(dir, p), o)
		if err != nil {
			return err
		}
		found = found || in
	}
	if !found {
		s.dbs = s.dbs[:len(s.dbs)-1]
		return nil
	}
	db.dirs = append(db.dirs, dir)
	return nil
}

// subdirs lists the directories whose names are accepted, in the order of their numbers.
func subdirs(dir string, accept func(string) bool) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if accept(e.Name()) {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return out, nil
}

// openHome opens the five stores in a directory; it returns false when there are none.
func (s *source) openHome(ctx context.Context, db *database, dir string, o *format.OpenOptions) (bool, error) {
	var missing []string
	for i := range families {
		ts, err := openStore(ctx, s.dir, dir, &families[i], o)
		if err != nil {
			return false, err
		}
		if ts == nil {
			missing = append(missing, path.Join(dir, families[i].dir))
			continue
		}
		ts.database = db.name
		db.stores = append(db.stores, ts)
		if ts.family.score != "" && ts.data.listed && !ts.score.listed {
			report(o, record.Finding{Kind: FindMissingScores, Severity: record.Error, DB: db.name, Type: record.ZSet, Keyspace: ts.rel,
				Detail: "there is no score_cf, without which the engine does not open the database; scores are read from data_cf"})
		}
	}
	if len(missing) == len(families) {
		return false, nil
	}
	db.dirs = append(db.dirs, dir)
	if len(missing) > 0 {
		report(o, record.Finding{Kind: FindMissingStore, Severity: record.Warning, DB: db.name, Detail: strings.Join(missing, ", ") +
			" not found; the engine always has all five, so data may have been left behind"})
	}
	return true, checkStreams(ctx, s.dir, path.Join(dir, streamsDir), db.name, o)
}

// report hands on a finding about the dataset itself.
func report(o *format.OpenOptions, f record.Finding) {
	if o.Options.Report != nil {
		f.Place.Level = -1
		o.Options.Report(f)
	}
}

// checkStreams reports streams, which are not read. Later Pikas have the directory in any case.
func checkStreams(ctx context.Context, root, rel, db string, o *format.OpenOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	opts := o.Options
	opts.Report = nil
	st, err := o.Store(ctx, filepath.Join(root, rel), walDir(&opts, o.WALDir, rel))
	if err != nil && isAbsent(filepath.Join(root, rel), err) {
		return nil
	}
	f := record.Finding{Kind: FindStreams, Severity: record.Error, DB: db, Type: record.Stream, Keyspace: rel}
	if err == nil {
		err = firstRow(st)
		if cerr := st.Close(); cerr != nil {
			return cerr
		}
		if err == io.EOF {
			return nil
		}
	}
	f.Detail = "streams are not read; they are left out"
	if err != nil {
		f.Detail = fmt.Sprintf("streams are not read; if there are any they are left out (%v)", err)
	}
	report(o, f)
	return nil
}

// firstRow returns io.EOF when a store has no rows.
func firstRow(st store.Store) error {
	for _, ks := range st.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			return err
		}
		_, _, err = it.Next()
		if cerr := it.Close(); err == nil {
			err = cerr
		}
		if err != io.EOF {
			return err
		}
	}
	return io.EOF
}

// Format returns blackwidow.
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

// Sorted returns true: metas are in order, and so are data rows lane by lane.
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
		for _, sp := range ts.spaces() {
			n += sp.keyspace.Size()
		}
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

// storesOf returns the stores of some types, in dump order within a partition.
func (s *source) storesOf(name string, t record.TypeSet) []*typeStore {
	db := s.database(name)
	if db == nil {
		return nil
	}
	var out []*typeStore
	for _, ts := range db.stores {
		if t.Has(ts.family.typ) {
			out = append(out, ts)
		}
	}
	return out
}

// Records returns a reader of the types' records, merged over types and partitions.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.storesOf(db, t)
	var readers []record.Reader
	for _, ts := range stores {
		r, err := newPass(ctx, ts, span, e, len(stores)).open()
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

// Keyspaces returns the column families of each database, named "hashes/data_cf", and "0/hashes/data_cf"
// in a partition.
func (s *source) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, db := range s.dbs {
		for _, ts := range db.stores {
			for _, sp := range ts.spaces() {
				out = append(out, format.Keyspace{DB: db.name, Name: sp.short, Keyspace: sp.keyspace})
			}
		}
	}
	return out
}

// Extra lists the info files of bgsave.
func (s *source) Extra() []string {
	dirs := []string{""}
	for _, db := range s.dbs {
		dirs = append(dirs, db.dirs...)
	}
	slices.Sort(dirs)
	var out []string
	for _, dir := range slices.Compact(dirs) {
		rel := path.Join(dir, infoFile)
		if st, err := os.Stat(filepath.Join(s.dir, rel)); err == nil && st.Mode().IsRegular() {
			out = append(out, rel)
		}
	}
	return out
}

// Close closes all stores.
func (s *source) Close() error {
	var errs []error
	for _, db := range s.dbs {
		for _, ts := range db.stores {
			errs = append(errs, ts.store.Close())
		}
	}
	s.dbs = nil
	return errors.Join(errs...)
}
