//go:build leveldb

package ardb

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvferry/ardb/codec"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/cleveldb"
)

// nativeSize is small, so that LevelDB compacts through several levels.
const nativeSize = 256 << 10

// TestLevelDBReadsGolden: LevelDB itself has the same rows of a server's database as our reader, and one more: a field of
// h:intf whose deletion missed it, because its integers form a circle (see store.Wrapping).
func TestLevelDBReadsGolden(t *testing.T) {
	dir := fixtures.Unpack(t, "ardb-leveldb-basic")
	rows := levelScan(t, dir)
	withLevelDB(t, filepath.Join(dir, kindLevelDB), func(db *cleveldb.DB) {
		i, ours := 0, len(rows)
		if err := db.Walk(nil, func(k, v []byte) {
			if bytes.Contains(k, []byte("h:intf")) && bytes.HasSuffix(v, []byte("v9223372036854775807")) {
				rows = slices.Insert(rows, i, [2]string{string(k), string(v)})
			}
			i++
		}); err != nil {
			t.Fatal(err)
		}
		if len(rows) != ours+1 {
			t.Errorf("LevelDB does not show the deleted field")
		}
		wantNative(t, db, nil, rows)
	})
}

// TestLevelDBMovesTarget: LevelDB itself opens, compacts under a snapshot, changes, reopens and repairs the
// written target. Each time it has the rows of the model, and our reader has the same records.
func TestLevelDBMovesTarget(t *testing.T) {
	golden := openGolden(t, kindLevelDB)
	for _, tc := range []struct {
		name   string
		dbs    []string
		size   int64 // of a table
		tables int   // at least
		read   func(i int, db string) *record.Walker
	}{
		{"golden, a table", []string{"bar"}, 64 << 20, 1, func(_ int, db string) *record.Walker { return goldenRecords(t, golden, db) }},
		{"golden, tables", golden.Databases(), 32 << 10, 5, func(_ int, db string) *record.Walker { return goldenRecords(t, golden, db) }},
		{"random, tables", []string{"0", "10", "a name"}, 128 << 10, 5, func(i int, db string) *record.Walker {
			return record.Walk(fixtures.Records(uint64(31+i), 60, randomOptions(db)))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			o := createOptions(t, kindLevelDB, tc.dbs...)
			o.Build = store.BuildOptions{TableSize: tc.size}
			want := fillTarget(t, dir, o, tc.read)
			n := len(levelTables(t, filepath.Join(dir, kindLevelDB)))
			t.Logf("%d tables, %d rows", n, len(levelScan(t, dir)))
			if n < tc.tables || tc.tables == 1 && n != 1 {
				t.Fatalf("%d tables", n)
			}
			for _, move := range []func(*testing.T, string, [][2]string){moveNative, repairNative} {
				copied := filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				move(t, filepath.Join(copied, kindLevelDB), levelScan(t, dir))
			}
			repair(t, filepath.Join(dir, kindLevelDB))
			withLevelDB(t, filepath.Join(dir, kindLevelDB), func(db *cleveldb.DB) { db.Compact() })
			env := testEnv(noFindings(t))
			env.Now = time.Unix(0, 0) // the expired ones too
			if got := fingerprint(t, openDir(t, dir, kindLevelDB, nil), env); len(want.Diff(got, false)) > 0 {
				t.Errorf("after repair and compaction, fingerprints differ: %v", want.Diff(got, false))
			}
		})
	}
}

// goldenRecords reads a namespace; of the largest one only enough types.
func goldenRecords(t *testing.T, src format.Source, db string) *record.Walker {
	t.Helper()
	types := record.AllTypes
	if db == "0" {
		types = record.Of(record.String, record.Hash, record.Stream)
	}
	return formattest.RecordsOf(t, src, db, types, format.Span{}, testEnv(nil))
}

// fillTarget writes the records that read yields for each namespace.
func fillTarget(t *testing.T, dir string, o *format.CreateOptions,
	read func(i int, db string) *record.Walker) *record.Fingerprint {
	t.Helper()
	target := create(t, dir, o)
	var sum record.Fingerprint
	for i, db := range o.DBs {
		w, err := formattest.One(target.Shard(i, db, record.AllTypes, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		pump(t, target, w, read(i, db), &sum)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	src, err := target.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	return &sum
}

func levelTables(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.ldb", "*.sst"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	return names
}

func withLevelDB(t *testing.T, dir string, f func(*cleveldb.DB)) {
	t.Helper()
	db, err := cleveldb.Open(dir, codec.LevelDBComparer(), nativeSize)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	f(db)
}

// wantNative compares the rows of a snapshot.
func wantNative(t *testing.T, db *cleveldb.DB, s *cleveldb.Snapshot, want [][2]string) {
	t.Helper()
	var rows [][2]string
	if err := db.Walk(s, func(k, v []byte) { rows = append(rows, [2]string{string(k), string(v)}) }); err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(want) {
		t.Fatalf("LevelDB has %d rows, want %d", len(rows), len(want))
	}
	for i := range rows {
		if rows[i] != want[i] {
			t.Fatalf("LevelDB has %x as row %d, want %x", rows[i], i, want[i])
		}
	}
}

// moveNative opens a database, compacts it under a snapshot, overwrites and deletes rows, compacts under the
// snapshot and without it, and reopens; the rows match the model each time.
func moveNative(t *testing.T, dir string, rows [][2]string) {
	t.Helper()
	var left [][2]string
	withLevelDB(t, dir, func(db *cleveldb.DB) {
		wantNative(t, db, nil, rows)
		for _, row := range rows {
			if v, ok, err := db.Get([]byte(row[0])); err != nil || !ok || !bytes.Equal(v, []byte(row[1])) {
				t.Fatalf("get %x: %x, %v, %v; want %x", row[0], v, ok, err, row[1])
			}
		}
		before := db.Snapshot()
		db.Compact()
		wantNative(t, db, nil, rows)
		wantNative(t, db, before, rows)
		left = changeNative(t, db, rows)
		db.Compact()
		wantNative(t, db, nil, left)
		wantNative(t, db, before, rows)
		db.Release(before)
		db.Compact()
		wantNative(t, db, nil, left)
	})
	withLevelDB(t, dir, func(db *cleveldb.DB) { wantNative(t, db, nil, left) })
}

// changeNative overwrites a third of the rows, deletes a third, adds some, and returns the result.
func changeNative(t *testing.T, db *cleveldb.DB, rows [][2]string) (left [][2]string) {
	t.Helper()
	model := map[string]string{}
	put := func(key, value []byte) {
		model[string(key)] = string(value)
		if err := db.Put(key, value); err != nil {
			t.Fatal(err)
		}
	}
	for i, row := range rows {
		switch i % 3 {
		case 0:
			put([]byte(row[0]), fmt.Appendf(nil, "changed %d", i))
		case 1:
			if err := db.Delete([]byte(row[0])); err != nil {
				t.Fatal(err)
			}
		default:
			model[row[0]] = row[1]
		}
	}
	ns := codec.AppendText(nil, []byte("0"))
	for i := range 50 {
		put(codec.AppendKey(nil, ns, fmt.Appendf(nil, "new:%d", i), codec.KindMeta), str(codec.IntData(int64(i))))
	}
	for _, key := range slices.SortedFunc(maps.Keys(model), func(a, b string) int {
		return codec.CompareNamespaced([]byte(a), []byte(b))
	}) {
		left = append(left, [2]string{key, model[key]})
	}
	return left
}

// repair runs RepairDB, which must not drop a table.
func repair(t *testing.T, dir string) {
	t.Helper()
	if err := cleveldb.Repair(dir, codec.LevelDBComparer(), nativeSize); err != nil {
		t.Fatal(err)
	}
	if lost := levelTables(t, filepath.Join(dir, "lost")); len(lost) > 0 {
		t.Fatalf("RepairDB gave up %q", lost)
	}
}

// repairNative repairs a database, uses it like any other, and repairs it again without its MANIFEST.
func repairNative(t *testing.T, dir string, rows [][2]string) {
	t.Helper()
	repair(t, dir)
	moveNative(t, dir, rows)
	var left [][2]string
	withLevelDB(t, dir, func(db *cleveldb.DB) {
		if err := db.Walk(nil, func(k, v []byte) { left = append(left, [2]string{string(k), string(v)}) }); err != nil {
			t.Fatal(err)
		}
	})
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("%q, %v", manifests, err)
	}
	for _, path := range append(manifests, filepath.Join(dir, "CURRENT")) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	repair(t, dir)
	withLevelDB(t, dir, func(db *cleveldb.DB) { wantNative(t, db, nil, left) })
}
