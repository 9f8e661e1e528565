package ssdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// db is the only database. dataDir and metaDir are LevelDB directories and names of keyspaces.
const (
	db      = "0"
	dataDir = "data"
	metaDir = "meta"
)

// homes are the parents of dataDir and metaDir: in a work directory or a dump of ssdb-dump, and beside ssdb.conf.
var homes = []string{"", "var"}

// held is the advice for a directory that a server has open: SSDB has no BGSAVE.
const held = "take a backup (ssdb-dump -h HOST -p PORT -o DIR, or stop the server and copy the directory) and read that, or pass --allow-live"

// source is an open dataset.
type source struct {
	versioned.Source
	stores   []store.Store
	data     store.Keyspace
	meta     store.Keyspace // nil if absent
	expiries *keylanes.Directory
}

// open opens the dataset in dir.
func open(ctx context.Context, f ssdbFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{Source: versioned.NewSource(f, dir)}
	s.Flat = true
	if err := s.openAll(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.expiries = keylanes.NewDirectory(s.data, expiryRows)
	d := &versioned.Database{Name: db}
	for _, f := range families[:len(families)-1] {
		st := versioned.NewStore(f.layout, db, "", func(string) store.Keyspace {
			return &dataset.Slice{Keyspace: s.data, Holds: f.holds}
		}, nil)
		st.Named(func(string) (long, short string) { return dataDir, dataDir })
		st.Wrap(s.timed)
		d.Stores = append(d.Stores, st)
	}
	s.DBs = []*versioned.Database{d}
	return s, nil
}

func (s *source) openAll(ctx context.Context, o *format.OpenOptions) (err error) {
	for _, home := range homes {
		if s.data, err = s.openStore(ctx, disk.Join(home, dataDir), o); s.data == nil && err == nil {
			continue
		}
		if err == nil {
			s.meta, err = s.openStore(ctx, disk.Join(home, metaDir), o)
		}
		return err
	}
	if _, err := disk.Stat(disk.Join(s.Dir, "..", dataDir)); err == nil && filepath.Base(s.Dir) == metaDir {
		return fmt.Errorf("%s: the server keeps its own state here, not data; name %s, or the directory above", s.Dir,
			disk.Join(s.Dir, "..", dataDir))
	}
	if s.data, err = s.openStore(ctx, "", o); s.data != nil || err != nil && !errors.Is(err, store.ErrNotStore) {
		return err
	}
	return fmt.Errorf("%s: not an SSDB database: want a LevelDB directory in it, or in %s or var/%s below it: %w", s.Dir, dataDir,
		dataDir, store.ErrNotStore)
}

// openStore opens a LevelDB directory; it returns nil if the directory does not exist.
func (s *source) openStore(ctx context.Context, rel string, o *format.OpenOptions) (store.Keyspace, error) {
	st, err := dataset.OpenStore(ctx, s.Dir, rel, o)
	if st == nil {
		return nil, store.Advise(err, held)
	}
	s.stores = append(s.stores, st)
	all := st.Keyspaces()
	if len(all) != 1 || !all[0].Comparer().IsBytewise() {
		return nil, fmt.Errorf("%s: want a single keyspace in byte order, as SSDB writes it", disk.Join(s.Dir, rel))
	}
	return all[0], nil
}

// Where lists the raw ranges of a name, in all types, and the range of a string's expiry.
func (s *source) Where(name string, key []byte) []format.Range {
	out := s.Source.Where(name, key)
	if len(key) > 0 && len(key) <= MaxName {
		lo, hi := store.KeyRange(appendMember(bytes.Clone(expiryPrefix), key))
		out = append(out, format.Range{Keyspace: dataDir, Type: record.String, Lo: lo, Hi: hi})
	}
	return out
}

// Keyspaces lists data and meta.
func (s *source) Keyspaces() []format.Keyspace {
	out := []format.Keyspace{{DB: db, Name: dataDir, Keyspace: s.data}}
	if s.meta != nil {
		out = append(out, format.Keyspace{Name: metaDir, Keyspace: s.meta})
	}
	return out
}

// Extra returns no files.
func (s *source) Extra() []string { return nil }

// Close closes the stores.
func (s *source) Close() error {
	var errs []error
	for _, st := range s.stores {
		errs = append(errs, st.Close())
	}
	return errors.Join(errs...)
}

func closing(c interface{ Close() error }, err error) error { return errors.Join(err, c.Close()) }
