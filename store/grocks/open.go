//go:build rocksdb

package grocks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/linxGnu/grocksdb"

	"kvferry/store"
)

// database is a RocksDB database opened read only.
type database struct {
	dir     string
	logs    string // the directory of RocksDB's own LOG
	db      *grocksdb.DB
	options []*grocksdb.Options
	spaces  []*keyspace
	merger  *merger
}

var _ store.Opener = Open

// Open opens a directory through RocksDB, read only.
func Open(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Resort {
		return nil, fmt.Errorf("%s: RocksDB cannot read tables that are out of order: use the native store", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "CURRENT")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no CURRENT file: %w", dir, store.ErrNotStore)
	}
	if !o.AllowLive {
		if err := store.CheckLive(dir, "LOCK"); err != nil {
			return nil, err
		}
	}
	d := &database{dir: dir}
	if err := d.open(o); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *database) open(o *store.Options) error {
	comparators, err := comparatorNames(d.dir)
	if err != nil {
		return err
	}
	if d.logs, err = os.MkdirTemp(o.TempDir, "kvferry-rocksdb-log-"); err != nil {
		return err
	}
	if o.Merger != nil {
		d.merger = &merger{m: o.Merger}
	}
	dbOptions := d.newOptions(o)
	names, err := grocksdb.ListColumnFamilies(dbOptions, d.dir)
	if err != nil {
		return fmt.Errorf("%s: %w", d.dir, err)
	}
	var families []*grocksdb.Options
	for _, name := range names {
		c, err := findComparer(comparators[name], o.Comparers)
		if err != nil {
			return fmt.Errorf("%s: column family %q: %w", d.dir, name, err)
		}
		co := d.newOptions(o)
		setComparator(co, c)
		families = append(families, co)
		d.spaces = append(d.spaces, &keyspace{d: d, name: name, cmp: c})
	}
	db, handles, err := grocksdb.OpenDbForReadOnlyColumnFamilies(dbOptions, d.dir, names, families, false)
	if err != nil {
		return fmt.Errorf("%s: %w", d.dir, err)
	}
	d.db = db
	for i, h := range handles {
		d.spaces[i].handle = h
	}
	return nil
}

// newOptions makes options that live until Close.
func (d *database) newOptions(o *store.Options) *grocksdb.Options {
	opts := grocksdb.NewDefaultOptions()
	d.options = append(d.options, opts)
	opts.SetDbLogDir(d.logs)
	opts.SetParanoidChecks(true)
	opts.SetSkipStatsUpdateOnDBOpen(true)
	if o.WALDir != "" {
		opts.SetWalDir(o.WALDir)
	}
	if d.merger != nil {
		opts.SetMergeOperator(d.merger)
	}
	return opts
}

// findComparer finds a comparator by the name in the database.
func findComparer(name string, known []store.Comparer) (*store.Comparer, error) {
	if name == store.Bytewise.Name {
		return &store.Bytewise, nil
	}
	for i := range known {
		if known[i].Name == name {
			return &known[i], nil
		}
	}
	return nil, fmt.Errorf("unknown comparator %q", name)
}

// Keyspaces lists the column families.
func (d *database) Keyspaces() []store.Keyspace {
	out := make([]store.Keyspace, len(d.spaces))
	for i, k := range d.spaces {
		out[i] = k
	}
	return out
}

// Files lists the tables of RocksDB, the logs, CURRENT and MANIFEST.
func (d *database) Files() []store.File {
	var out []store.File
	for _, f := range d.db.GetLiveFilesMetaData() {
		out = append(out, store.File{
			Path:     strings.TrimPrefix(f.Name, "/"),
			Kind:     "table",
			Keyspace: f.ColumnFamilyName,
			Level:    f.Level,
			Size:     f.Size,
			Entries:  -1, // RocksDB reads the properties of the first few tables only
			Deletes:  -1,
			Smallest: f.SmallestKey,
			Largest:  f.LargestKey,
		})
	}
	entries, _ := os.ReadDir(d.dir) // it was readable when it was opened; sizes are not worth an error
	for _, e := range entries {
		kind := ""
		switch name := e.Name(); {
		case name == "CURRENT":
			kind = "current"
		case strings.HasPrefix(name, "MANIFEST-"):
			kind = "manifest"
		case strings.HasSuffix(name, ".log"):
			kind = "log"
		}
		if info, err := e.Info(); kind != "" && err == nil {
			out = append(out, store.File{Path: e.Name(), Kind: kind, Size: info.Size(), Entries: -1, Deletes: -1})
		}
	}
	return out
}

// Close closes the database. Handles go first: RocksDB asserts that.
func (d *database) Close() error {
	for _, k := range d.spaces {
		if k.handle != nil {
			k.handle.Destroy()
			k.handle = nil
		}
	}
	if d.db != nil {
		d.db.Close()
		d.db = nil
	}
	if d.merger == nil { // grocksdb frees a merge operator twice; better not at all
		for _, o := range d.options {
			o.Destroy()
		}
	}
	d.options = nil
	if d.logs == "" {
		return nil
	}
	return os.RemoveAll(d.logs)
}
