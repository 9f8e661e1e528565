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
	"kvferry/internal/dataset"
	"kvferry/record"
	"kvferry/store"
)

// source is an open dataset. The stores of a database are five, or five for each partition.
type source struct {
	dataset.Source[*typeStore]
	format blackwidowFormat
	dir    string
}

type database = dataset.Database[*typeStore]

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
	dirs, err := subdirs(s.dir, dataset.IsDB)
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
	parts, err := subdirs(filepath.Join(s.dir, dir), dataset.IsNumber)
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
		if dataset.Passed(s.dir, path.Join(dir, families[i].dir), db.Name, families[i].typ, o) {
			continue
		}
		ts, err := openStore(ctx, s.dir, dir, &families[i], o)
		if err != nil {
			return false, err
		}
		if ts == nil {
			missing = append(missing, path.Join(dir, families[i].dir))
			continue
		}
		ts.database = db.Name
		db.Stores = append(db.Stores, ts)
		if ts.family.score != "" && ts.data.listed && !ts.score.listed {
			dataset.Report(o, record.Finding{Kind: FindMissingScores, Severity: record.Error, DB: db.Name, Type: record.ZSet, Keyspace: ts.rel,
				Detail: "there is no score_cf, without which the engine does not open the database; scores are read from data_cf"})
		}
	}
	if len(missing) == len(families) {
		return false, nil
	}
	db.Dirs = append(db.Dirs, dir)
	dataset.ReportMissing(o, db.Name, missing)
	return true, checkStreams(ctx, s.dir, path.Join(dir, streamsDir), db.Name, o)
}

// checkStreams reports streams, which are not read. Later Pikas have the directory in any case.
func checkStreams(ctx context.Context, root, rel, db string, o *format.OpenOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	quiet := *o
	quiet.Options.Report = nil
	st, err := dataset.OpenStore(ctx, root, rel, &quiet)
	if st == nil && err == nil {
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
	dataset.Report(o, f)
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

func (s *source) database(name string) *database { return s.Database(name) }

// storesOf returns the stores of some types, in dump order within a partition.
func (s *source) storesOf(name string, t record.TypeSet) []*typeStore { return s.StoresOf(name, t) }

// Records returns a reader of the types' records, merged over types and partitions.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.storesOf(db, t)
	return dataset.Merge(stores, func(ts *typeStore) (record.Reader, error) {
		return newPass(ctx, ts, span, e, len(stores)).open()
	})
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
