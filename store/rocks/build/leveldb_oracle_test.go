package build_test

import (
	"context"
	"io"
	"math/rand"
	"path/filepath"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"kvferry/internal/testkit/seed"
	"kvferry/store"
	"kvferry/store/rocks"
)

// random returns a generator for a test.
func random(t *testing.T) *rand.Rand { return rand.New(rand.NewSource(seed.Of(t))) }

// collidingKey makes keys that share prefixes, end in zeros and come often.
func collidingKey(r *rand.Rand) []byte {
	key := make([]byte, r.Intn(9))
	for i := range key {
		key[i] = "\x00\x00\x01a\xff"[r.Intn(5)]
	}
	return key
}

// TestReadsWhatLevelDBWrites: LevelDB makes random changes, in levels, in overlapping tables of
// level 0 and in the log, and store/rocks shows the rows that LevelDB shows.
func TestReadsWhatLevelDBWrites(t *testing.T) {
	for _, tc := range []struct {
		name string
		opt  opt.Options
		cmp  store.Comparer
	}{
		{"in the log alone", opt.Options{WriteBuffer: 64 << 20}, store.Bytewise},
		{"overlapping tables", opt.Options{WriteBuffer: 8 << 10, CompactionL0Trigger: 1000, WriteL0SlowdownTrigger: 1000, WriteL0PauseTrigger: 1000}, store.Bytewise},
		{"levels", opt.Options{WriteBuffer: 8 << 10, CompactionTableSize: 8 << 10, CompactionTotalSize: 16 << 10}, store.Bytewise},
		{"levels, uncompressed", opt.Options{WriteBuffer: 8 << 10, CompactionTableSize: 8 << 10, Compression: opt.NoCompression}, store.Bytewise},
		{"overlapping tables in another order", opt.Options{WriteBuffer: 8 << 10, CompactionL0Trigger: 1000, WriteL0SlowdownTrigger: 1000, WriteL0PauseTrigger: 1000}, reversed},
		{"levels in another order", opt.Options{WriteBuffer: 8 << 10, CompactionTableSize: 8 << 10}, reversed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := random(t)
			dir := filepath.Join(t.TempDir(), "db")
			o := tc.opt
			o.Comparer, o.Filter = levelComparer{tc.cmp}, filter.NewBloomFilter(10)
			want := levelChanges(t, r, dir, &o)
			s, err := rocks.Open(context.Background(), dir, &store.Options{Comparers: []store.Comparer{reversed}})
			must(t, err)
			defer s.Close()
			it, err := s.Keyspaces()[0].Rows(nil, nil)
			must(t, err)
			defer it.Close()
			for i := 0; ; i++ {
				key, value, err := it.Next()
				if err == io.EOF && i == len(want) {
					break
				}
				must(t, err)
				if i == len(want) || string(key) != string(want[i].key) || string(value) != string(want[i].value) {
					t.Fatalf("row %d of %d has key %q, want %q", i, len(want), key, want[min(i, len(want)-1)].key)
				}
			}
		})
	}
}

// levelChanges makes random changes to a new database and returns what LevelDB then shows.
func levelChanges(t *testing.T, r *rand.Rand, dir string, o *opt.Options) (rows []testRow) {
	t.Helper()
	db, err := leveldb.OpenFile(dir, o)
	must(t, err)
	for i := range 4000 {
		key, value := collidingKey(r), make([]byte, r.Intn(40))
		r.Read(value)
		if r.Intn(4) == 0 {
			must(t, db.Delete(key, nil))
		} else {
			must(t, db.Put(key, value, nil))
		}
		if i == 3000 && o.CompactionL0Trigger == 0 && o.WriteBuffer < 1<<20 {
			must(t, db.CompactRange(util.Range{}))
		}
	}
	it := db.NewIterator(nil, nil)
	for it.Next() {
		rows = append(rows, testRow{append([]byte{}, it.Key()...), append([]byte{}, it.Value()...)})
	}
	must(t, it.Error())
	it.Release()
	must(t, db.Close())
	if len(rows) < 500 {
		t.Fatalf("only %d rows", len(rows))
	}
	return rows
}
