package kvrocks

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/kvrocks/cluster"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// target is a dataset being written. All types share the store, so a shard holds all of them.
type target struct {
	format  kvrocksFormat
	dir     string // of the server; the database is below it
	builder store.Builder
	options *format.CreateOptions
	version codec.Version     // version of the first record; the others are lower
	slots   *dataset.RowFiles // rows of a cluster node before they become tables; nil without slots

	mu     sync.Mutex
	shards map[int]bool // with tables, for the layout of SST files; nil if not requested
}

var _ format.Target = (*target)(nil)

// Create starts a target: the database's directory in dir.
func (f kvrocksFormat) Create(_ context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	for _, db := range o.DBs {
		if err := checkNamespace(db, o.Cluster); err != nil {
			return nil, err
		}
	}
	t := &target{format: f, dir: dir, options: o, version: codec.Version(o.Now.UnixMicro()) << codec.VersionCounter}
	if o.Now.IsZero() {
		t.version = 1 << 60
	}
	build := o.Build
	if o.SST {
		if err := checkLoadPath(dir); err != nil {
			return nil, err
		}
		build.External, t.shards = true, map[int]bool{}
	}
	var err error
	if t.builder, err = o.Create(filepath.Join(dir, storeDir), build); err != nil {
		return nil, err
	}
	// The server creates missing families.
	for _, name := range codec.Families[:cfStreamID+1] {
		if err := t.builder.Keyspace(name, store.Bytewise); err != nil {
			t.builder.Abort()
			return nil, err
		}
	}
	if o.Cluster {
		t.slots = dataset.NewRowFiles(dir, slotsDir)
	}
	return t, nil
}

// slotsDir holds the rows of shards until all are complete:
//
//	slots/000001.rows   of shard 1
const slotsDir = "slots"

// cfStreamID is the last column family that every server knows, as an index in families.
const cfStreamID = 5

// checkNamespace refuses invalid names of namespaces.
func checkNamespace(db string, cluster bool) error {
	switch {
	case len(db) == 0 || len(db) > codec.MaxNamespace:
		return fmt.Errorf("database %.64q: a namespace of Kvrocks has 1 to %d bytes, this name %d", db, codec.MaxNamespace, len(db))
	case db[len(db)-1] == 0x7f:
		return fmt.Errorf("database %q: a namespace of Kvrocks does not end in the byte 0x7f", db)
	case cluster && db != DefaultNamespace:
		return fmt.Errorf("database %q: a node of a cluster has no namespaces; convert one database with --db, and --namespace %s", db, DefaultNamespace)
	}
	return nil
}

// Groups returns one group: all types share the store.
func (t *target) Groups() []record.TypeSet { return []record.TypeSet{record.AllTypes} }

// maxShardRecords is the number of records of a shard that have unique versions.
const maxShardRecords = 1 << 32

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	if err := checkNamespace(db, t.options.Cluster); err != nil {
		return nil, err
	}
	if memory <= 0 {
		memory = dataset.DefaultMemory
	}
	t.taken(n)
	return newWriter(t, n, db, memory), nil
}

// Tables returns the tables of a shard, with files relative to the dataset.
func (t *target) Tables(n int) ([]store.Table, error) {
	if t.slots != nil {
		return t.slots.Tables(n), nil
	}
	out, err := t.builder.Tables(n)
	for i := range out {
		out[i].File = path.Join(storeDir, out[i].File)
	}
	return out, err
}

// Adopt takes the tables of a shard that an earlier process finished, or the file of its rows in a cluster.
func (t *target) Adopt(n int, _ string, tables []store.Table) error {
	if t.slots != nil {
		for _, table := range tables {
			if err := t.slots.Adopt(n, table); err != nil {
				return err
			}
		}
		return nil
	}
	own := make([]store.Table, len(tables))
	for i, table := range tables {
		file, ok := strings.CutPrefix(table.File, storeDir+"/")
		if !ok {
			return fmt.Errorf("%s: table %q is not in %s", t.dir, table.File, storeDir)
		}
		table.File = file
		own[i] = table
	}
	t.taken(n)
	return t.builder.Adopt(own)
}

// Finish finishes the database and opens it for the proof.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	if t.slots != nil {
		o := extsort.Options{Memory: t.options.Memory, TempDir: t.options.TempDir}
		if err := t.slots.Merge(o, func(rows *extsort.Sorter) error { return cluster.Write(ctx, t.builder, rows) }); err != nil {
			return nil, err
		}
	}
	if err := t.builder.Finish(); err != nil {
		return nil, err
	}
	if t.slots != nil {
		if err := t.slots.Remove(); err != nil {
			return nil, err
		}
	}
	if err := t.linkTables(); err != nil {
		return nil, err
	}
	if t.options.Reopen == nil {
		return nil, nil
	}
	return t.format.Open(ctx, t.dir, t.options.Reopen)
}

// Abort removes the written files, as far as possible.
func (t *target) Abort() {
	t.builder.Abort()
	if t.shards != nil {
		disk.RemoveAll(filepath.Join(t.dir, sstDir))
	}
	if t.slots != nil {
		_ = t.slots.Remove() // the error that led here is reported instead
	}
	disk.Remove(t.dir)
}
