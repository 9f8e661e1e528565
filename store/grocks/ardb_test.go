//go:build rocksdb

package grocks

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/linxGnu/grocksdb"

	"kvferry/ardb"
	"kvferry/ardb/codec"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// ardbTarget writes the records that read returns for each namespace with ardb's target, and returns the directory and
// the fingerprint of the records.
func ardbTarget(t *testing.T, dbs []string, read func(db string) record.Reader) (string, *record.Fingerprint) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	target, err := ardb.New().Create(context.Background(), dir,
		&format.CreateOptions{Create: build.Create, Kind: "rocksdb", DBs: dbs,
			Build: store.BuildOptions{TableSize: 1 << 18}, TempDir: t.TempDir(), Now: fixtures.Clock})
	must(t, err)
	var sum record.Fingerprint
	for i, db := range dbs {
		w, err := target.Shard(i, db, record.AllTypes, 1<<20)
		must(t, err)
		must(t, fixtures.Pump(w, read(db)))
		must(t, w.Close())
		f, err := fixtures.Sum(read(db))
		must(t, err)
		sum.Merge(f)
	}
	_, err = target.Finish(context.Background())
	must(t, err)
	return dir, &sum
}

// ardbSum reads an Ardb directory with our own reader.
func ardbSum(t *testing.T, dir string) *record.Fingerprint {
	t.Helper()
	src, err := ardb.New().Open(context.Background(), dir, &format.OpenOptions{Store: rocks.Open, Kind: "rocksdb"})
	must(t, err)
	defer src.Close()
	var sum record.Fingerprint
	for _, db := range src.Databases() {
		r, err := src.Records(context.Background(), db, record.AllTypes, format.Span{},
			&format.Env{Now: fixtures.Clock, TempDir: t.TempDir()})
		must(t, err)
		f, err := fixtures.Sum(r)
		must(t, err)
		sum.Merge(f)
	}
	return &sum
}

// TestRocksDBReadsArdbTarget: RocksDB, ordering by the comparator in C, sees the rows that ardb's
// target wrote: scans, spans, seeks and 10,000 Gets a namespace agree, and after it has compacted
// everything our reader sees the same records.
func TestRocksDBReadsArdbTarget(t *testing.T) {
	r := random(t)
	seed := r.Uint64()
	generated := func(db string) record.Reader {
		return fixtures.Records(seed+uint64(len(db)), 600,
			fixtures.Options{DB: db, Limits: ardb.New().Limits(), NarrowInts: true})
	}
	golden, err := ardb.New().Open(context.Background(), fixtures.Unpack(t, "ardb-rocksdb-basic"),
		&format.OpenOptions{Store: rocks.Open, Kind: "rocksdb"})
	must(t, err)
	defer golden.Close()
	for _, tc := range []struct {
		name string
		dbs  []string
		read func(db string) record.Reader
	}{
		{"generated", []string{"0", "users", "中文"}, generated},
		{"golden", golden.Databases(), func(db string) record.Reader {
			rd, err := golden.Records(context.Background(), db, record.AllTypes, format.Span{},
				&format.Env{Now: fixtures.Clock, TempDir: t.TempDir()})
			must(t, err)
			return rd
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, want := ardbTarget(t, tc.dbs, tc.read)
			engine := filepath.Join(dir, "rocksdb")
			before := snapshot(t, engine)
			ours, err := rocks.Open(context.Background(), engine, &store.Options{Comparers: []store.Comparer{codec.Comparer()}})
			must(t, err)
			defer ours.Close()
			theirs := openRocks(t, engine, &store.Options{Comparers: []store.Comparer{codec.Comparer()}})
			if len(theirs.spaces) != len(tc.dbs)+1 {
				t.Fatalf("%d column families, want %d and default", len(theirs.spaces), len(tc.dbs))
			}
			o := order{codec.Comparer(), ardbKey}
			for i, ks := range ours.Keyspaces() {
				k := theirs.spaces[i]
				if k.Name() != ks.Name() || k.Comparer().Name != "ardb.comparator" {
					t.Fatalf("column family %d is %q, %q", i, k.Name(), k.Comparer().Name)
				}
				f := family{ks.Name(), o, scan(t, ks, nil, nil)}
				wantRows(t, f.name, scan(t, k, nil, nil), f.rows)
				spans(t, r, k, f)
				seeks(t, r, k, f)
				gets(t, r, k, o, f.rows, 10_000)
			}
			wantUnchanged(t, engine, before)
			compactArdb(t, engine, append([]string{"default"}, tc.dbs...))
			if diff := want.Diff(ardbSum(t, dir), false); len(diff) > 0 {
				t.Errorf("after a compaction by RocksDB, fingerprints differ: %v", diff)
			}
		})
	}
}

// compactArdb opens a database for writing, overwrites and deletes rows that were not there, and
// compacts it.
func compactArdb(t *testing.T, dir string, names []string) {
	t.Helper()
	cmp := codec.Comparer()
	opts := make([]*grocksdb.Options, len(names))
	for i := range names {
		opts[i] = grocksdb.NewDefaultOptions()
		setComparator(opts[i], &cmp)
		defer opts[i].Destroy()
	}
	db, handles, err := grocksdb.OpenDbColumnFamilies(opts[0], dir, names, opts)
	must(t, err)
	wo := grocksdb.NewDefaultWriteOptions()
	defer wo.Destroy()
	for i, h := range handles {
		if i > 0 {
			for n := range 100 {
				key := codec.AppendKey(nil, nil, []byte(fmt.Sprintf("new:%d", n)), codec.KindMeta)
				must(t, db.PutCF(wo, h, key, []byte{byte(codec.KindString), 0, 0, 1, byte(codec.TagInt), 2}))
			}
			for n := range 100 {
				must(t, db.DeleteCF(wo, h, codec.AppendKey(nil, nil, []byte(fmt.Sprintf("new:%d", n)), codec.KindMeta)))
			}
		}
		db.CompactRangeCF(h, grocksdb.Range{})
	}
	for _, h := range handles {
		h.Destroy()
	}
	db.Close()
}
