// Package catalog lists all formats and stores of a build. It parses locations, detects formats and opens datasets,
// for the command line and the library.
package catalog

import (
	"fmt"

	"kvferry/ardb"
	"kvferry/blackwidow"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/keydbflash"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/parquet"
	"kvferry/redis"
	"kvferry/redis/aof"
	"kvferry/redis/live"
	"kvferry/ssdb"
	"kvferry/store"
	"kvferry/store/lmdb"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// Catalog lists formats and stores. Default returns the build's; tests use others.
type Catalog struct {
	Formats []format.Format
	Drivers []Driver
	// Fallback reads RocksDB directories with RocksDB's own library; nil in a build without it.
	Fallback store.Opener
	// Objects makes an address in an object store readable as a path, and returns the path. nil: addresses are refused.
	Objects func(address string) (path string, err error)
	// Uploads are the settings for targets in an object store.
	Uploads object.Options
}

// Driver is a kind of store that this build can read, and perhaps write.
type Driver struct {
	Name   string // rocksdb, leveldb, lmdb
	Open   store.Opener
	Create store.CreateFunc // nil: read only
	// Peek gathers evidence of a directory for detection, without opening a database. It returns an error that wraps
	// store.ErrNotStore if the directory contains no store of this kind.
	Peek func(dir string) (format.StoreEvidence, error)
}

// Default returns every format and store of this build.
func Default() Catalog {
	return Catalog{
		Formats: []format.Format{nemo.New(), blackwidow.New(), floyd.New(), ardb.New(), kvrocks.New(), ssdb.New(),
			keydbflash.New(), redis.New(), aof.New(), live.New(), parquet.New()},
		Drivers: []Driver{
			{Name: "rocksdb", Open: rocks.Open, Create: build.Create, Peek: peekTables("rocksdb")},
			{Name: "leveldb", Open: rocks.Open, Create: build.CreateLevelDB, Peek: peekTables("leveldb")},
			{Name: "lmdb", Open: lmdb.Open, Peek: peekLMDB},
		},
		Fallback: fallback(),
	}
}

// peekTables returns the Peek function of a kind of table store.
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
			ev.Keyspaces = append(ev.Keyspaces, format.KeyspaceEvidence{Name: k.Name, Comparer: k.Comparer, Ends: k.Ends})
		}
		return ev, nil
	}
}

// peekLMDB is the Peek function of LMDB.
func peekLMDB(dir string) (format.StoreEvidence, error) {
	if _, err := disk.Lstat(disk.Join(dir, "data.mdb")); err != nil {
		return format.StoreEvidence{}, store.ErrNotStore
	}
	names, err := lmdb.Peek(dir)
	ev := format.StoreEvidence{}
	for _, name := range names {
		ev.Keyspaces = append(ev.Keyspaces, format.KeyspaceEvidence{Name: name})
	}
	return ev, err
}

// WithRDBVersion returns a target's format with another version of RDB files, one of rdb.Versions.
func WithRDBVersion(f format.Format, version string) (format.Format, error) {
	switch f.Name() {
	case redis.Name:
		return redis.WithVersion(version)
	case aof.Name:
		return aof.WithVersion(version)
	}
	return nil, fmt.Errorf("%s writes no RDB files", format.LocationName(f))
}
