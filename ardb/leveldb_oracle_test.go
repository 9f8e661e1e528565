package ardb

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/comparer"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"kvferry/ardb/codec"
	"kvferry/fixtures"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

// levelComparer is the server's order as a LevelDB comparator; like the server's it shortens no keys.
type levelComparer struct{}

func (levelComparer) Compare(a, b []byte) int         { return codec.CompareNamespaced(a, b) }
func (levelComparer) Name() string                    { return codec.ComparerName }
func (levelComparer) Separator(_, _, _ []byte) []byte { return nil }
func (levelComparer) Successor(_, _ []byte) []byte    { return nil }

var _ comparer.Comparer = levelComparer{}

// TestLevelDBUsesTarget: LevelDB opens a directory of the target, reads each row, writes to it and compacts
// it; our reader then returns the same records.
func TestLevelDBUsesTarget(t *testing.T) {
	dbs := []string{"0", "10", "a name", "1"}
	dir := filepath.Join(t.TempDir(), "data")
	o := createOptions(t, kindLevelDB, dbs...)
	o.Build = store.BuildOptions{TableSize: 1 << 18}
	target := create(t, dir, o)
	var want record.Fingerprint
	for i, db := range dbs {
		w, err := formattest.One(target.Shard(i, db, record.AllTypes, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		pump(t, target, w, record.Walk(fixtures.Records(uint64(77+i), 400, randomOptions(db))), &want)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	src, err := target.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
	rows := levelScan(t, dir)
	useLevelDB(t, filepath.Join(dir, kindLevelDB), rows)
	if got := fingerprint(t, openDir(t, dir, kindLevelDB, nil), testEnv(noFindings(t))); len(want.Diff(got, false)) > 0 {
		t.Errorf("fingerprints differ: %v", want.Diff(got, false))
	}
	again := levelScan(t, dir)
	if len(again) != len(rows) {
		t.Fatalf("%d rows, were %d", len(again), len(rows))
	}
	for i := range rows {
		if again[i] != rows[i] {
			t.Fatalf("row %d has key %x, had %x", i, again[i][0], rows[i][0])
		}
	}
}

// levelScan reads all rows with our own store.
func levelScan(t *testing.T, dir string) (rows [][2]string) {
	t.Helper()
	s, err := rocks.Open(context.Background(), filepath.Join(dir, kindLevelDB),
		&store.Options{Comparers: []store.Comparer{codec.LevelDBComparer()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	it, err := s.Keyspaces()[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		k, v, err := it.Next()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, [2]string{string(k), string(v)})
	}
}

// useLevelDB compares all rows, looks up each, rewrites, adds and deletes some, and compacts.
func useLevelDB(t *testing.T, dir string, rows [][2]string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := leveldb.OpenFile(dir, &opt.Options{Comparer: levelComparer{}, Filter: filter.NewBloomFilter(10),
		ErrorIfMissing: true, WriteBuffer: 64 << 10})
	check(err)
	it := db.NewIterator(nil, nil)
	n := 0
	for ; it.Next(); n++ {
		if n >= len(rows) || string(it.Key()) != rows[n][0] || string(it.Value()) != rows[n][1] {
			t.Fatalf("LevelDB has another row %d: key %x", n, it.Key())
		}
	}
	check(it.Error())
	it.Release()
	if n != len(rows) {
		t.Fatalf("LevelDB has %d rows, want %d", n, len(rows))
	}
	for i, r := range rows {
		v, err := db.Get([]byte(r[0]), nil)
		if err != nil || !bytes.Equal(v, []byte(r[1])) {
			t.Fatalf("get %x: %d bytes, want %d: %v", r[0], len(v), len(r[1]), err)
		}
		if i%7 == 0 {
			check(db.Put([]byte(r[0]), []byte(r[1]), nil))
		}
	}
	ns := codec.AppendText(nil, []byte("10"))
	for i := range 500 {
		key := codec.AppendKey(nil, ns, []byte(fmt.Sprintf("new:%d", i)), codec.KindMeta)
		check(db.Put(key, codec.AppendValue(nil, &codec.Value{Kind: codec.KindString}, codec.IntData(int64(i))), nil))
	}
	check(db.CompactRange(util.Range{}))
	for i := range 500 {
		check(db.Delete(codec.AppendKey(nil, ns, []byte(fmt.Sprintf("new:%d", i)), codec.KindMeta), nil))
	}
	check(db.Close())
	db, err = leveldb.OpenFile(dir, &opt.Options{Comparer: levelComparer{}, Filter: filter.NewBloomFilter(10),
		ErrorIfMissing: true})
	check(err)
	check(db.CompactRange(util.Range{}))
	check(db.Close())
}
