// Package catalog is the one place that knows all formats and stores of a build. It says what a location means,
// which format lies there, and how it is opened. The command line and the library find datasets by it.
package catalog

import (
	"path/filepath"

	"kvferry/ardb"
	"kvferry/blackwidow"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/redis"
	"kvferry/redis/aof"
	"kvferry/redis/live"
	"kvferry/store"
	"kvferry/store/lmdb"
	"kvferry/store/rocks"
)

// Catalog lists formats and stores. Default is that of this build, tests make others.
type Catalog struct {
	Formats []format.Format
	Drivers []Driver
	// Fallback reads RocksDB directories with RocksDB's own library; nil in a build without it.
	Fallback store.Opener
}

// Driver is a kind of store that this build reads, and perhaps writes.
type Driver struct {
	Name   string // rocksdb, leveldb, lmdb
	Open   store.Opener
	Create store.CreateFunc // nil: read only
	// Peek reads what detection wants to know of a directory, without opening a database. It
	// returns an error that wraps store.ErrNotStore when the directory holds no such store.
	Peek func(dir string) (format.StoreEvidence, error)
}

// Default returns every format and store of this build.
func Default() Catalog {
	return Catalog{
		Formats: []format.Format{nemo.New(), blackwidow.New(), floyd.New(), ardb.New(), kvrocks.New(), redis.New(), aof.New(), live.New()},
		Drivers: []Driver{
			{Name: "rocksdb", Open: rocks.Open, Create: rocks.Create, Peek: peekTables("rocksdb")},
			{Name: "leveldb", Open: rocks.Open, Create: rocks.CreateLevelDB, Peek: peekTables("leveldb")},
			{Name: "lmdb", Open: lmdb.Open, Peek: peekLMDB},
		},
		Fallback: fallback(),
	}
}

// peekTables looks at a directory of tables of one kind.
func peekTables(kind string) func(dir string) (format.StoreEvidence, error) {
	return func(dir string) (format.StoreEvidence, error) {
		if !rocks.IsStore(dir) {
			return format.StoreEvidence{}, store.ErrNotStore
		}
		found, keyspaces, err := rocks.Peek(dir)
		if found != kind {
			return format.StoreEvidence{}, store.ErrNotStore
		}
		ev := format.StoreEvidence{Kind: found, Err: err}
		for _, k := range keyspaces {
			ev.Keyspaces = append(ev.Keyspaces, format.KeyspaceEvidence{Name: k.Name, Comparer: k.Comparer})
		}
		return ev, nil
	}
}

// peekLMDB looks at an LMDB environment.
func peekLMDB(dir string) (format.StoreEvidence, error) {
	if _, err := disk.Lstat(filepath.Join(dir, "data.mdb")); err != nil {
		return format.StoreEvidence{}, store.ErrNotStore
	}
	names, err := lmdb.Peek(dir)
	ev := format.StoreEvidence{}
	for _, name := range names {
		ev.Keyspaces = append(ev.Keyspaces, format.KeyspaceEvidence{Name: name})
	}
	return ev, err
}
