package ardb

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/ardb/codec"
	"kvferry/internal/sys/disk"
	"kvferry/store"
)

// The engines under an Ardb server differ in the directory of the data and in the place of namespaces in the store:
//
//	RocksDB   DIR/rocksdb   a column family each; the default one is unused
//	LevelDB   DIR/leveldb   all in one, each key beginning with its namespace
//	LMDB      DIR/lmdb      a named database each, beside __LMDB_META__ and __TTL_DB__

// Engines, as locations and their directories name them.
const (
	kindRocksDB = "rocksdb"
	kindLevelDB = "leveldb"
	kindLMDB    = "lmdb"
)

// defaultCF is RocksDB's own column family, and LevelDB's only keyspace.
const defaultCF = "default"

// engineOf finds the engine's directory and which engine it is.
func engineOf(dir, kind string) (engine, found string, err error) {
	kinds := []string{kindRocksDB, kindLevelDB, kindLMDB}
	if kind != "" {
		kinds = []string{kind}
	}
	if k := storeIn(dir); k != "" {
		kind = cmp.Or(kind, k)
		return dir, kind, nil
	}
	var at []string
	for _, k := range kinds {
		if sub := disk.Join(dir, k); storeIn(sub) != "" {
			at = append(at, k)
		}
	}
	switch len(at) {
	case 0:
		if kind != "" { // stores that are no files
			return disk.Join(dir, kind), kind, nil
		}
		return "", "", fmt.Errorf("%s: no rocksdb, leveldb or lmdb directory of Ardb here: %w", dir, store.ErrNotStore)
	case 1:
		return disk.Join(dir, at[0]), at[0], nil
	}
	return "", "", fmt.Errorf("%s: holds databases of %s: name the directory of one", dir, strings.Join(at, " and "))
}

// storeIn returns the engine whose files a directory contains, or "".
func storeIn(dir string) string {
	if exists(dir, "data.mdb") {
		return kindLMDB
	}
	if !exists(dir, "CURRENT") {
		return ""
	}
	if exists(dir, "IDENTITY") || matches(dir, "OPTIONS-*") || matches(dir, "*.sst") && !matches(dir, "*.ldb") {
		return kindRocksDB
	}
	return kindLevelDB
}

func exists(dir, name string) bool {
	_, err := disk.Stat(disk.Join(dir, name))
	return err == nil
}

func matches(dir, pattern string) bool {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		ok, err := filepath.Match(pattern, e.Name())
		return ok && err == nil
	})
}

// unopenedError explains why an engine's directory in dir was not opened; it may be missing.
func unopenedError(err error, dir, home, kind string) error {
	if _, gone := disk.Stat(home); errors.Is(gone, fs.ErrNotExist) {
		return fmt.Errorf("%s: not a database of Ardb on %s: want a directory %s in it, or the files of one: %w", dir, kind, kind,
			store.ErrNotStore)
	}
	return heldError(err, kind)
}

// heldError replaces the advice in a LiveError, since BGSAVE writes no database here.
func heldError(err error, kind string) error {
	if kind == kindLMDB {
		return store.Advise(err, "LMDB files change in place and cannot be read safely while the server runs: stop the server and copy the directory, or "+
			"read a copy made by the server (SAVE backup writes save-lmdb-backup to its backup-dir)")
	}
	return store.Advise(err, "stop the server, copy the directory and read the copy, or pass --allow-live")
}

// lmdbOrder is the order of a named database of LMDB: its directory of namespaces is in plain order.
func lmdbOrder(name string) *store.Comparer {
	if name == codec.LMDBNamespace {
		return nil
	}
	c := codec.Comparer()
	return &c
}
