package blackwidow

import (
	"context"
	"errors"
	"path"
	"slices"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store/rocks/files"
)

// source is an open dataset. The stores of a database are five, or five for each partition.
type source struct {
	versioned.Source
	homes []home
}

// home is a directory with stores.
type home struct {
	db, dir string
	streams bool // there, or skipped
	closed  bool // permissions hide the streams store, so whether it exists is unknown
}

// open opens all databases of a directory.
func open(ctx context.Context, f blackwidowFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{Source: versioned.NewSource(f, dir)}
	opts := *o
	opts.Options.Comparers = Comparers()
	err := s.OpenDBs(o, "strings, hashes, lists, sets and zsets in it, in db0, db1, … or in db0/0, db0/1, …",
		func(name, dir string) (bool, error) { return s.openDB(ctx, name, dir, &opts) })
	if err == nil {
		err = s.checkStreams(o)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openDB opens a database, partitioned or not; it returns false if the database has no stores.
func (s *source) openDB(ctx context.Context, name, dir string, o *format.OpenOptions) (bool, error) {
	db := &versioned.Database{Name: name}
	s.DBs = append(s.DBs, db)
	found, err := s.openHome(ctx, db, dir, o)
	if err != nil || found {
		return found, err
	}
	var parts []string
	if dir != "" {
		if parts, err = dataset.Subdirs(disk.Join(s.Dir, dir), dataset.IsNumber); err != nil {
			return false, err
		}
	}
	for _, p := range parts {
		in, err := s.openHome(ctx, db, path.Join(dir, p), o)
		if err != nil {
			return false, err
		}
		found = found || in
	}
	if !found {
		s.DBs = s.DBs[:len(s.DBs)-1]
		return false, nil
	}
	db.Dirs = append(db.Dirs, dir)
	return true, nil
}

// openHome opens the five stores in a directory; it returns false if the directory has no stores.
func (s *source) openHome(ctx context.Context, db *versioned.Database, dir string, o *format.OpenOptions) (bool, error) {
	var missing []dataset.Lack
	h := home{db: db.Name, dir: dir, streams: true}
	for i := range families {
		rel := path.Join(dir, families[i].dir)
		if dataset.Passed(s.Dir, rel, db.Name, families[i].typ, o) {
			h.closed = families[i].typ == record.Stream && dataset.Closed(s.Dir, rel)
			continue
		}
		st, err := families[i].open(ctx, s.Dir, dir, db.Name, o)
		if err != nil {
			return false, err
		}
		if st == nil && families[i].typ == record.Stream {
			h.streams = false // only later servers have it
			continue
		}
		if st == nil {
			missing = append(missing, dataset.Lack{Dir: rel, Type: families[i].typ})
			continue
		}
		db.Stores = append(db.Stores, st)
	}
	if len(missing) == len(withoutStreams) {
		return false, nil
	}
	db.Dirs = append(db.Dirs, dir)
	s.homes = append(s.homes, h)
	dataset.ReportMissing(s.Dir, db.Name, missing, o)
	return true, nil
}

// checkStreams reports a lost streams store of a database: other databases have theirs, or the RocksDB version
// belongs to a server that always creates the store.
func (s *source) checkStreams(o *format.OpenOptions) error {
	others := slices.ContainsFunc(s.homes, func(h home) bool { return h.streams && !h.closed })
	for _, h := range s.homes {
		rel := path.Join(h.dir, families[len(families)-1].dir)
		if h.streams || dataset.Unwanted(s.Dir, rel, h.db, record.Of(record.Stream), o) {
			continue
		}
		why := "it exists in other databases"
		if !others {
			version, err := s.rocksOf(h)
			if err != nil {
				return err
			}
			if !files.VersionAtLeast(version, 8, 7) {
				continue
			}
			why = "Pika 3.5.3 and later always create it, and their RocksDB " + version + " opened the database"
		}
		dataset.Report(o, record.Finding{Kind: dataset.FindMissingStore, Severity: record.Error, DB: h.db, Type: record.Stream,
			Detail: rel + " not found; " + why + ", so data may have been left behind"})
	}
	return nil
}

// rocksOf returns the RocksDB version that last opened the stores of a directory, "" if no file records it.
func (s *source) rocksOf(h home) (version string, err error) {
	for i := range withoutStreams {
		version, _, err = files.Option(disk.Join(s.Dir, h.dir, withoutStreams[i].dir), "rocksdb_version")
		if version != "" || err != nil {
			break
		}
	}
	return version, err
}

// open opens the store of one type; nil if it does not exist. The engine opens a store that has only the
// default column family; the other column families are then empty.
func (f *family) open(ctx context.Context, root, dir, db string, o *format.OpenOptions) (*versioned.Store, error) {
	rel := path.Join(dir, f.dir)
	st, spaces, err := versioned.OpenStore(ctx, root, rel, db, f.layout, f.orders, o)
	if st == nil {
		return nil, err
	}
	if spaces[cfData] != nil && spaces[cfScore] == nil && f.orders[cfScore] != nil {
		dataset.Report(o, record.Finding{Kind: FindMissingScores, Severity: record.Error, DB: db, Type: record.ZSet,
			Keyspace: rel,
			Detail:   "score_cf is missing; the engine does not open the database without it; kvferry reads the scores from data_cf"})
	}
	return st, nil
}
