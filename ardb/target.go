package ardb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"kvferry/ardb/codec"
	"kvferry/ardb/engine"
	"kvferry/ardb/merge"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hlldialect"
	"kvferry/record"
	"kvferry/store"
)

// target is a dataset being written. All types share one order, so a shard is one run.
type target struct {
	hlldialect.Strings
	format  ardbFormat
	dir     string // data directory of the server; the engine's is below it
	kind    string
	builder store.Builder
	options *format.CreateOptions
	spans   codec.Spans       // see ElementLosses
	ttl     *dataset.RowFiles // LevelDB: rows of the TTL index
}

var _ format.Target = (*target)(nil)

// Create starts a target: the engine's directory in dir.
func (f ardbFormat) Create(_ context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	t := &target{format: f, dir: dir, kind: o.Kind, options: o, ttl: dataset.NewRowFiles(dir, ttlDir)}
	if t.kind == "" {
		t.kind = engine.RocksDB
	}
	if t.kind == engine.LMDB {
		return nil, fmt.Errorf("ardb is not written to LMDB: %s", lmdbReason)
	}
	if t.kind != engine.RocksDB && t.kind != engine.LevelDB {
		return nil, fmt.Errorf("ardb is not written to %s: have %s and %s", t.kind, engine.RocksDB, engine.LevelDB)
	}
	if t.kind == engine.LevelDB && f.server == serverOld {
		return nil, fmt.Errorf("%s is not written to LevelDB: %s", f.server, oldReason)
	}
	for _, db := range o.DBs {
		if err := t.checkNamespace(db); err != nil {
			return nil, err
		}
	}
	build := o.Build
	build.Merger = merge.Name
	var err error
	if t.builder, err = o.Create(filepath.Join(dir, t.kind), build); err != nil {
		return nil, err
	}
	if err := t.declare(); err != nil {
		t.builder.Abort()
		return nil, err
	}
	return t, nil
}

// declare makes the keyspaces. The server opens all column families with one comparator, including the unused
// default one.
func (t *target) declare() error {
	if t.kind == engine.LevelDB {
		return t.builder.Keyspace(engine.DefaultCF, codec.LevelDBComparer())
	}
	err := t.builder.Keyspace(engine.DefaultCF, codec.Comparer())
	for _, db := range t.options.DBs {
		err = errors.Join(err, t.builder.Keyspace(db, codec.Comparer()))
	}
	return err
}

// checkNamespace refuses names that the server does not accept as a namespace.
func (t *target) checkNamespace(db string) error {
	switch {
	case db == "" || len(db) > codec.MaxNamespace:
		return fmt.Errorf("database %.64q: a namespace of Ardb has 1 to %d bytes, this name %d", db, codec.MaxNamespace, len(db))
	case db == codec.TTLNamespace || db == codec.LMDBNamespace:
		return fmt.Errorf("database %q: Ardb keeps this namespace for itself", db)
	case t.kind == engine.RocksDB && db == engine.DefaultCF:
		return fmt.Errorf("database %q: Ardb does not read RocksDB's default column family; rename the database", db)
	case t.kind == engine.RocksDB && strings.ContainsRune(db, 0):
		return fmt.Errorf("database %q: the name of a column family cannot contain a NUL", db)
	}
	return nil
}

// Groups returns a single group, since all types share one order.
func (t *target) Groups() []record.TypeSet { return []record.TypeSet{record.RedisTypes} }

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	keyspace := db
	var ns []byte
	if t.kind == engine.LevelDB {
		keyspace, ns = engine.DefaultCF, codec.AppendText(nil, []byte(db))
	}
	run, err := t.builder.Run(keyspace, n, 0)
	if err != nil {
		return nil, err
	}
	return newWriter(t, n, db, ns, run, memory), nil
}

// Tables returns the tables of a shard, and on LevelDB the file of its TTL rows.
func (t *target) Tables(n int) ([]store.Table, error) {
	out, err := t.builder.Tables(n)
	return append(out, t.ttl.Tables(n)...), err
}

// Adopt takes the tables of a shard that an earlier process finished.
func (t *target) Adopt(n int, _ string, tables []store.Table) error {
	var own []store.Table
	for i := range tables {
		if !t.ttl.Has(&tables[i]) {
			own = append(own, tables[i])
		} else if err := t.ttl.Adopt(n, tables[i]); err != nil {
			return err
		}
	}
	return t.builder.Adopt(own)
}

// Finish makes the database and opens it for the proof.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	if err := engine.WriteTTL(ctx, t.ttl, t.builder, engine.TTLOptions(t.options.Memory, t.options.TempDir)); err != nil {
		return nil, err
	}
	if err := t.builder.Finish(); err != nil {
		return nil, err
	}
	if err := t.ttl.Remove(); err != nil {
		return nil, err
	}
	if t.options.Reopen == nil {
		return nil, nil
	}
	o := *t.options.Reopen
	o.Kind = t.kind
	return t.format.Open(ctx, t.dir, &o)
}

// Abort removes the written files.
func (t *target) Abort() {
	t.builder.Abort()
	_ = t.ttl.Remove() // the error that led here matters more
}
