package blackwidow

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/versioned"
	"kvferry/record"
	"kvferry/store"
)

// source is an open dataset. The stores of a database are five, or five for each partition.
type source struct {
	dataset.Source[*versioned.Store]
	format blackwidowFormat
	dir    string
}

type database = dataset.Database[*versioned.Store]

// open opens all databases of a directory.
func open(ctx context.Context, f blackwidowFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{format: f, dir: dir}
	opts := *o
	opts.Options.Comparers = Comparers()
	if err := s.openAll(ctx, &opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *source) openAll(ctx context.Context, o *format.OpenOptions) error {
	flat := &database{Name: "0"}
	s.DBs = append(s.DBs, flat)
	var err error
	if s.Flat, err = s.openHome(ctx, flat, "", o); err != nil || s.Flat {
		return err
	}
	s.DBs = nil
	dirs, err := dataset.Subdirs(s.dir, dataset.IsDB)
	if err != nil {
		return fmt.Errorf("open blackwidow database: %w", err)
	}
	for _, dir := range dirs {
		if err := s.openDB(ctx, dir, o); err != nil {
			return err
		}
	}
	if len(s.DBs) == 0 {
		return fmt.Errorf("%s: no blackwidow database: want RocksDB directories strings, hashes, lists, sets and zsets in it, "+
			"in db0, db1, … or in db0/0, db0/1, …", s.dir)
	}
	return nil
}

// openDB opens a database that has a directory of its own, partitioned or not.
func (s *source) openDB(ctx context.Context, dir string, o *format.OpenOptions) error {
	db := &database{Name: strings.TrimPrefix(dir, "db")}
	s.DBs = append(s.DBs, db)
	found, err := s.openHome(ctx, db, dir, o)
	if err != nil || found {
		return err
	}
	parts, err := dataset.Subdirs(filepath.Join(s.dir, dir), dataset.IsNumber)
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
		s.DBs = s.DBs[:len(s.DBs)-1]
		return nil
	}
	db.Dirs = append(db.Dirs, dir)
	return nil
}

// openHome opens the five stores in a directory; it returns false when there are none.
func (s *source) openHome(ctx context.Context, db *database, dir string, o *format.OpenOptions) (bool, error) {
	var missing []string
	for i := range families {
		if dataset.Passed(s.dir, path.Join(dir, families[i].dir), db.Name, families[i].typ, o) {
			continue
		}
		st, err := families[i].open(ctx, s.dir, dir, db.Name, o)
		if err != nil {
			return false, err
		}
		if st == nil && families[i].typ == record.Stream {
			continue // only later servers have them
		}
		if st == nil {
			missing = append(missing, path.Join(dir, families[i].dir))
			continue
		}
		db.Stores = append(db.Stores, st)
	}
	if len(missing) == len(withoutStreams) {
		return false, nil
	}
	db.Dirs = append(db.Dirs, dir)
	dataset.ReportMissing(o, db.Name, missing)
	return true, nil
}

// open opens the store of one type, nil when it is not there. The engine opens a store that has only the default column
// family; what is missing is then empty.
func (f *family) open(ctx context.Context, root, dir, db string, o *format.OpenOptions) (*versioned.Store, error) {
	rel := path.Join(dir, f.dir)
	st, err := dataset.OpenStore(ctx, root, rel, o)
	if st == nil {
		return nil, err
	}
	spaces := map[string]store.Keyspace{}
	for _, ks := range st.Keyspaces() {
		if err := f.accepts(filepath.Join(root, rel), ks); err != nil {
			return nil, errors.Join(err, st.Close())
		}
		spaces[ks.Name()] = ks
	}
	if spaces[cfData] != nil && spaces[cfScore] == nil && f.orders[cfScore] != nil {
		dataset.Report(o, record.Finding{Kind: FindMissingScores, Severity: record.Error, DB: db, Type: record.ZSet, Keyspace: rel,
			Detail: "there is no score_cf, without which the engine does not open the database; scores are read from data_cf"})
	}
	return versioned.NewStore(f.layout, db, rel, func(name string) store.Keyspace { return spaces[name] }, st), nil
}

// accepts refuses column families that the engine does not have.
func (f *family) accepts(dir string, ks store.Keyspace) error {
	want := f.orderOf(ks.Name())
	if want == nil {
		return fmt.Errorf("%s: has a column family %q, which the engine refuses to open", dir, ks.Name())
	}
	if got := ks.Comparer().Name; got != want.Name {
		return fmt.Errorf("%s: column family %s is ordered by %s, want %s", dir, ks.Name(), got, want.Name)
	}
	return nil
}

// Format returns blackwidow.
func (s *source) Format() format.Format { return s.format }

// Records returns a reader of the types' records, merged over types and partitions.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.Database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.StoresOf(db, t)
	return dataset.Merge(stores, func(st *versioned.Store) (record.Reader, error) {
		return st.Records(ctx, t, span, e, versioned.Share(e, len(stores)))
	})
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
		return st.DeadRecords(ctx, t, span, e, versioned.Share(e, len(stores)), tell)
	})
}

// Where lists the raw ranges of a user key: its meta row (or the whole row, for strings) and its data rows.
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
	slices.Sort(dirs)
	return dataset.InfoFiles(s.dir, slices.Compact(dirs))
}
