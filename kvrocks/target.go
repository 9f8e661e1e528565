package kvrocks

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// target is a dataset being written. All types share the store, so a shard holds all of them.
type target struct {
	*dataset.Adapter
	*dataset.OneStore // a cluster node sorts its rows by slot before they become tables
	format            kvrocksFormat
	dir               string // of the server; the database is below it
	options           *format.CreateOptions
	version           codec.Version // version of the first record; the others are lower

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
	t := &target{Adapter: f.adapter(), format: f, dir: dir, options: o,
		version: codec.Version(o.Now.UnixMicro()) << codec.VersionCounter}
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
	var spaces []dataset.Keyspace
	for _, name := range codec.Families[:cfStreamID+1] { // the server creates missing families
		spaces = append(spaces, dataset.Keyspace{Name: name, Order: store.Bytewise})
	}
	var err error
	if t.OneStore, err = dataset.CreateOne(f, dir, storeDir, slotsDir, build, o, spaces); err != nil {
		return nil, err
	}
	t.After = t.linkTables
	if t.RowsOnly = o.Cluster; t.RowsOnly {
		t.Last = t.writeSlots
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
		return fmt.Errorf("database %.64q: a namespace of Kvrocks has 1 to %s bytes, this name %s", db,
			record.Number(codec.MaxNamespace), record.Number(len(db)))
	case db[len(db)-1] == 0x7f:
		return fmt.Errorf("database %q: a namespace of Kvrocks does not end in the byte 0x7f", db)
	case cluster && db != DefaultNamespace:
		return fmt.Errorf("database %q: a node of a cluster has no namespaces; convert one database with --db, and --namespace %s",
			db, DefaultNamespace)
	}
	return nil
}

// maxShardRecords is the number of records of a shard that have unique versions.
const maxShardRecords = 1 << 32

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	if err := checkNamespace(db, t.options.Cluster); err != nil {
		return nil, err
	}
	if memory <= 0 {
		memory = record.DefaultMemory
	}
	t.taken(n)
	return newWriter(t, n, db, memory), nil
}

// Adopt takes the tables of a shard that an earlier process finished, or the file of its rows in a cluster.
func (t *target) Adopt(n int, db string, tables []store.Table) error {
	t.taken(n)
	return t.OneStore.Adopt(n, db, tables)
}

// writeSlots writes the rows of all shards of a cluster node.
func (t *target) writeSlots(ctx context.Context) error {
	o := extsort.Options{Memory: t.options.Memory, TempDir: t.options.TempDir}
	return t.Rows.Merge(o, func(rows *extsort.Sorter) error { return dataset.WriteRuns(ctx, t.Builder, 0, rows, clusterPlace) })
}

// Abort removes the written files, as far as possible.
func (t *target) Abort() {
	if t.shards != nil {
		disk.RemoveAll(filepath.Join(t.dir, sstDir))
	}
	t.OneStore.Abort()
}
