package build_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/comparer"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"kvferry/store"
	"kvferry/store/rocks/build"
)

// levelComparer gives LevelDB one of our orders.
type levelComparer struct{ store.Comparer }

func (c levelComparer) Compare(a, b []byte) int         { return c.Comparer.Compare(a, b) }
func (c levelComparer) Name() string                    { return c.Comparer.Name }
func (c levelComparer) Separator(_, _, _ []byte) []byte { return nil }
func (c levelComparer) Successor(_, _ []byte) []byte    { return nil }

var _ comparer.Comparer = levelComparer{}

// TestLevelDBUsesBuilder: LevelDB opens a database of the Builder, reads it in every way, writes over it, compacts it
// and reads it again.
func TestLevelDBUsesBuilder(t *testing.T) {
	for _, c := range []store.Comparer{store.Bytewise, reversed} {
		t.Run(c.Name, func(t *testing.T) {
			rnd := rand.New(rand.NewSource(9))
			rows := testRows(rnd, 20_000, c)
			dir := filepath.Join(t.TempDir(), "db")
			b, err := build.CreateLevelDB(dir, store.BuildOptions{TableSize: 1 << 16})
			must(t, err)
			must(t, b.Keyspace("default", c))
			writeRun(t, b, "default", 1, 0, rows[10_000:])
			writeRun(t, b, "default", 0, 0, rows[:10_000])
			must(t, b.Finish())

			o := &opt.Options{Comparer: levelComparer{c}, Strict: opt.StrictAll, ErrorIfMissing: true,
				Filter: filter.NewBloomFilter(10)}
			db, err := leveldb.OpenFile(dir, o)
			must(t, err)
			wantLevelRows(t, db, rows)
			for i := range rows {
				switch i % 5 {
				case 0:
					rows[i].value = fmt.Appendf(nil, "changed %d", i)
					must(t, db.Put(rows[i].key, rows[i].value, nil))
				case 1:
					must(t, db.Delete(rows[i].key, nil))
				}
			}
			var left []testRow
			for i, row := range rows {
				if i%5 != 1 {
					left = append(left, row)
				}
			}
			must(t, db.CompactRange(util.Range{}))
			wantLevelRows(t, db, left)
			must(t, db.Close())
			db, err = leveldb.OpenFile(dir, o)
			must(t, err)
			wantLevelRows(t, db, left)
			must(t, db.Close())
		})
	}
}

// TestLevelDBMoves: rows outlive the loss of MANIFEST and CURRENT, which LevelDB's recovery rebuilds from the tables,
// and compactions under a snapshot from before the first write.
func TestLevelDBMoves(t *testing.T) {
	for _, recovered := range []bool{false, true} {
		for _, c := range []store.Comparer{store.Bytewise, reversed} {
			t.Run(fmt.Sprintf("%s, recovered %v", c.Name, recovered), func(t *testing.T) { levelMoves(t, c, recovered) })
		}
	}
}

func levelMoves(t *testing.T, c store.Comparer, recovered bool) {
	rows := testRows(rand.New(rand.NewSource(9)), 3000, c)
	dir := filepath.Join(t.TempDir(), "db")
	b, err := build.CreateLevelDB(dir, store.BuildOptions{TableSize: 1 << 13})
	must(t, err)
	must(t, b.Keyspace("default", c))
	writeRun(t, b, "default", 0, 0, rows)
	must(t, b.Finish())
	o := &opt.Options{Comparer: levelComparer{c}, Strict: opt.StrictAll, ErrorIfMissing: true, Filter: filter.NewBloomFilter(10),
		NoSync: true, CompactionTableSize: 1 << 13, CompactionTotalSize: 1 << 14, WriteBuffer: 1 << 13}
	open := leveldb.OpenFile
	if recovered {
		manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
		must(t, err)
		for _, path := range append(manifests, filepath.Join(dir, "CURRENT")) {
			must(t, os.Remove(path))
		}
		open = leveldb.RecoverFile
	}
	db, err := open(dir, o)
	must(t, err)
	wantLevelRows(t, db, rows)
	before, err := db.GetSnapshot()
	must(t, err)
	must(t, db.CompactRange(util.Range{}))
	wantLevelRows(t, db, rows)
	now := slices.Clone(rows)
	for i := 0; i < len(now); i += 3 {
		now[i].value = fmt.Appendf(nil, "changed %d", i)
		must(t, db.Put(now[i].key, now[i].value, nil))
	}
	must(t, db.CompactRange(util.Range{}))
	wantLevelRows(t, db, now)
	for _, row := range rows {
		value, err := before.Get(row.key, nil)
		if err != nil || string(value) != string(row.value) {
			t.Fatalf("the snapshot has %q for %q: %v", value, row.key, err)
		}
	}
	before.Release()
	must(t, db.CompactRange(util.Range{}))
	must(t, db.Close())
	db, err = leveldb.OpenFile(dir, o)
	must(t, err)
	wantLevelRows(t, db, now)
	must(t, db.Close())
}

// TestLevelDBReadsLargeRows: rows that are streamed into blocks of their own are to LevelDB as others are, also compacted
// under a snapshot and after a recovery from the tables alone.
func TestLevelDBReadsLargeRows(t *testing.T) {
	noise := make([]byte, 1100<<10)
	rand.New(rand.NewSource(5)).Read(noise)
	packed := bytes.Repeat(noise[:30_000], 50)
	var rows []testRow
	for i, value := range [][]byte{noise, packed, nil, noise[:100], packed[1:], noise[:1<<20-5], noise[:1<<20-6], noise[:9000],
		noise[2:], packed[2:]} {
		rows = append(rows, testRow{fmt.Appendf(nil, "key:%02d", i), value})
	}
	dir := filepath.Join(t.TempDir(), "db")
	b, err := build.CreateLevelDB(dir, store.BuildOptions{})
	must(t, err)
	writeRun(t, b, "default", 0, 0, rows)
	must(t, b.Finish())
	o := &opt.Options{Strict: opt.StrictAll, ErrorIfMissing: true, Filter: filter.NewBloomFilter(10), NoSync: true}
	db, err := leveldb.OpenFile(dir, o)
	must(t, err)
	wantLevelRows(t, db, rows)
	before, err := db.GetSnapshot()
	must(t, err)
	now := slices.Clone(rows)
	for i := 0; i < len(now); i += 4 {
		now[i].value = []byte("changed")
		must(t, db.Put(now[i].key, now[i].value, nil))
	}
	must(t, db.CompactRange(util.Range{}))
	wantLevelRows(t, db, now)
	for _, row := range rows {
		value, err := before.Get(row.key, nil)
		if err != nil || !bytes.Equal(value, row.value) {
			t.Fatalf("the snapshot has %d bytes for %q: %v", len(value), row.key, err)
		}
	}
	before.Release()
	must(t, db.Close())
	db, err = leveldb.RecoverFile(dir, o)
	must(t, err)
	wantLevelRows(t, db, now)
	must(t, db.Close())
}

// wantLevelRows scans forth and back and gets every key.
func wantLevelRows(t *testing.T, db *leveldb.DB, want []testRow) {
	t.Helper()
	it := db.NewIterator(nil, nil)
	defer it.Release()
	n := 0
	for ; it.Next(); n++ {
		if n == len(want) || string(it.Key()) != string(want[n].key) || string(it.Value()) != string(want[n].value) {
			t.Fatalf("row %d of %d has key %q", n, len(want), it.Key())
		}
	}
	must(t, it.Error())
	if n != len(want) {
		t.Fatalf("%d rows, want %d", n, len(want))
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		n--
		if string(it.Key()) != string(want[n].key) {
			t.Fatalf("backwards: row %d has key %q", n, it.Key())
		}
	}
	for _, row := range want {
		value, err := db.Get(row.key, nil)
		must(t, err)
		if string(value) != string(row.value) {
			t.Fatalf("get %q: %q", row.key, value)
		}
	}
	if _, err := db.Get([]byte("a key of more than thirty bytes, which no row has"), nil); err != leveldb.ErrNotFound {
		t.Fatalf("get of an absent key: %v", err)
	}
}
