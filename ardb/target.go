package ardb

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// target is a dataset being written. All types share one order, so a shard is one run.
type target struct {
	*dataset.Adapter
	*dataset.OneStore // on LevelDB with the rows of the TTL index
	format            ardbFormat
	kind              string
	options           *format.CreateOptions
}

var _ format.Target = (*target)(nil)

// Create starts a target: the engine's directory in dir.
func (f ardbFormat) Create(_ context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	own := *o
	t := &target{Adapter: f.adapter(), format: f, kind: cmp.Or(o.Kind, kindRocksDB), options: &own}
	if t.kind == kindLMDB {
		return nil, fmt.Errorf("ardb is not written to LMDB: %s", lmdbReason)
	}
	if t.kind != kindRocksDB && t.kind != kindLevelDB {
		return nil, fmt.Errorf("ardb is not written to %s: have %s and %s", t.kind, kindRocksDB, kindLevelDB)
	}
	if t.kind == kindLevelDB && f.server == serverOld {
		return nil, fmt.Errorf("%s is not written to LevelDB: %s", f.server, oldReason)
	}
	for _, db := range o.DBs {
		if err := t.checkNamespace(db); err != nil {
			return nil, err
		}
	}
	build := o.Build
	build.Merger = mergerName
	if o.Reopen != nil {
		reopen := *o.Reopen
		reopen.Kind, own.Reopen = t.kind, &reopen
	}
	var err error
	if t.OneStore, err = dataset.CreateOne(f, dir, t.kind, ttlDir, build, &own, t.spaces()); err != nil {
		return nil, err
	}
	t.Last = func(ctx context.Context) error {
		return writeTTL(ctx, t.Rows, t.Builder, ttlOptions(o.Memory, o.TempDir))
	}
	return t, nil
}

// spaces lists the keyspaces. The server opens all column families with one comparator, including the unused default
// one.
func (t *target) spaces() []dataset.Keyspace {
	if t.kind == kindLevelDB {
		return []dataset.Keyspace{{Name: defaultCF, Order: codec.LevelDBComparer()}}
	}
	out := []dataset.Keyspace{{Name: defaultCF, Order: codec.Comparer()}}
	for _, db := range t.options.DBs {
		out = append(out, dataset.Keyspace{Name: db, Order: codec.Comparer()})
	}
	return out
}

// checkNamespace refuses names that the server does not accept as a namespace.
func (t *target) checkNamespace(db string) error {
	switch {
	case db == "" || len(db) > codec.MaxNamespace:
		return fmt.Errorf("database %.64q: a namespace of Ardb has 1 to %s bytes, this name %s", db,
			record.Number(codec.MaxNamespace), record.Number(len(db)))
	case db == codec.TTLNamespace || db == codec.LMDBNamespace:
		return fmt.Errorf("database %q: Ardb keeps this namespace for itself", db)
	case t.kind == kindRocksDB && db == defaultCF:
		return fmt.Errorf("database %q: Ardb does not read RocksDB's default column family; rename the database", db)
	case t.kind == kindRocksDB && strings.ContainsRune(db, 0):
		return fmt.Errorf("database %q: the name of a column family cannot contain a NUL", db)
	}
	return nil
}
