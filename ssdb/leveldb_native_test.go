//go:build leveldb

package ssdb_test

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/ssdb"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
	"kvferry/store/rocks/cleveldb"
)

// TestLevelDBMovesTarget: LevelDB itself opens a target, has all its rows, changes and compacts it, and our reader then
// has the same records.
func TestLevelDBMovesTarget(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	o := &format.OpenOptions{Store: rocks.Open, Kind: "leveldb"}
	dst := formattest.Create(t, ssdb.New(), dir,
		&format.CreateOptions{Create: build.CreateLevelDB, DBs: []string{"0"}, Build: store.BuildOptions{TableSize: 64 << 10}})
	read := func(types record.TypeSet) record.Reader {
		return fixtures.Records(7, 400, fixtures.Options{DB: "0", Limits: ssdb.New().Limits()})
	}
	formattest.Shard(t, dst, 0, record.AllTypes, 1<<20, read(record.AllTypes))
	if _, err := dst.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := formattest.Sum(t, read(record.AllTypes))
	src := formattest.Open(t, ssdb.New(), dir, o)
	var rows [][2][]byte
	it, err := src.Keyspaces()[0].Rows(nil, nil)
	for err == nil {
		var key, value []byte
		if key, value, err = it.Next(); err == nil {
			rows = append(rows, [2][]byte{bytes.Clone(key), bytes.Clone(value)})
		}
	}
	if err != io.EOF || len(rows) < 1000 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	it.Close()
	src.Close()
	db, err := cleveldb.Open(filepath.Join(dir, "data"), store.Bytewise, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	check := func(key, value []byte) {
		if n >= len(rows) || !bytes.Equal(key, rows[n][0]) || !bytes.Equal(value, rows[n][1]) {
			t.Fatalf("row %d is %q", n, key)
		}
		n++
	}
	for range 2 { // before and after
		n = 0
		if err := db.Walk(nil, check); err != nil || n != len(rows) {
			t.Errorf("%d rows of %d, %v", n, len(rows), err)
		}
		for i := 0; i < len(rows); i += 3 {
			if err := db.Delete(rows[i][0]); err != nil {
				t.Fatal(err)
			}
			if err := db.Put(rows[i][0], rows[i][1]); err != nil {
				t.Fatal(err)
			}
		}
		db.Compact()
	}
	db.Close()
	again := formattest.Open(t, ssdb.New(), dir, o)
	formattest.CheckEqual(t, formattest.Sum(t, formattest.Records(t, again, "0", &format.Env{Now: now})), want, false)
}
