package state

import (
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/bloom"
	"github.com/cockroachdb/pebble/vfs"
)

// maxMemTables is the maximum number of memtables; beyond it, writes wait.
const maxMemTables = 3

// storeOptions are the settings of a store with a memory limit, whose background work reports its first error to failure. The caller
// gives the cache back once the store is open.
func storeOptions(fs vfs.FS, failure *storeFailure, memory int64) *pebble.Options {
	memTable := min(max(memory/32, 1<<19), 32<<20)
	cache := pebble.NewCache(memory/8 + maxMemTables*memTable) // the memory of memtables counts against it
	levels := make([]pebble.LevelOptions, 7)
	for i := range levels {
		levels[i] = pebble.LevelOptions{BlockSize: 4 << 10, FilterPolicy: bloom.FilterPolicy(10), TargetFileSize: 8 << 20}
	}
	o := &pebble.Options{
		FS:                          spillFS{fs, failure},
		EventListener:               failure.listener(),
		L0StopWritesThreshold:       1000, // a compaction that keeps failing must not block writers
		Cache:                       cache,
		DisableWAL:                  true,
		MemTableSize:                uint64(memTable),
		MemTableStopWritesThreshold: maxMemTables,
		L0CompactionThreshold:       16, // tables with all kinds of keys, so that each compaction writes nearly all rows
		MaxOpenFiles:                500,
		Levels:                      levels,
		Merger:                      &tails,
		Logger:                      silent{},
	}
	return o.EnsureDefaults()
}

// silent discards the log messages of the store, except fatal ones.
type silent struct{}

func (silent) Infof(string, ...interface{})      {}
func (silent) Errorf(string, ...interface{})     {}
func (silent) Fatalf(f string, a ...interface{}) { panic(fmt.Sprintf(f, a...)) }

// appendTail appends a tail to the row of a string.
func appendTail(row, tail []byte) []byte { return append(row, tail[2:]...) }

// tails lets the store append tails to rows.
var tails = pebble.Merger{Name: "kvferry.tails", Merge: func(_, value []byte) (pebble.ValueMerger, error) {
	t := tailMerger(slices.Clone(value))
	return &t, nil
}}

// tailMerger has the row so far.
type tailMerger []byte

// MergeNewer appends a tail.
func (t *tailMerger) MergeNewer(tail []byte) error {
	*t = appendTail(*t, tail)
	return nil
}

// MergeOlder appends the row so far to an older one.
func (t *tailMerger) MergeOlder(row []byte) error {
	*t = appendTail(slices.Clone(row), *t)
	return nil
}

// Finish returns the row.
func (t *tailMerger) Finish(bool) ([]byte, io.Closer, error) { return *t, nil, nil }

// keyFilter is a set of the keys that ever had another value than a short string, and of some that had not. All other keys
// are short strings, or do not exist.
type keyFilter []byte

// Add adds a key by its hash.
func (o keyFilter) Add(hash uint64) { o[hash/8%uint64(len(o))] |= 1 << (hash % 8) }

// Has reports whether a key may have had such a value.
func (o keyFilter) Has(hash uint64) bool { return o[hash/8%uint64(len(o))]&(1<<(hash%8)) != 0 }
