package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDir(t *testing.T) {
	make := func(files ...string) string {
		dir := t.TempDir()
		for _, f := range files {
			path := filepath.Join(dir, f)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for _, tt := range []struct {
		files []string
		kind  string
		sub   string
		want  string
	}{
		{[]string{"rocksdb/CURRENT", "rocksdb/IDENTITY"}, "", "rocksdb", RocksDB},
		{[]string{"leveldb/CURRENT"}, "", "leveldb", LevelDB},
		{[]string{"lmdb/data.mdb"}, "", "lmdb", LMDB},
		{[]string{"CURRENT", "OPTIONS-000005"}, "", "", RocksDB},
		{[]string{"CURRENT", "000005.sst"}, "", "", RocksDB},
		{[]string{"CURRENT", "000005.ldb", "000004.sst"}, "", "", LevelDB},
		{[]string{"CURRENT", "000005.sst"}, LevelDB, "", LevelDB},
		{[]string{"data.mdb"}, "", "", LMDB},
		{[]string{"rocksdb/CURRENT", "leveldb/CURRENT"}, LevelDB, "leveldb", LevelDB},
		{nil, RocksDB, "rocksdb", RocksDB},
	} {
		dir := make(tt.files...)
		home, kind, err := Dir(dir, tt.kind)
		if err != nil || kind != tt.want || home != filepath.Join(dir, tt.sub) {
			t.Errorf("%q: %s, %s, %v", tt.files, home, kind, err)
		}
	}
	if _, _, err := Dir(make("rocksdb/CURRENT", "leveldb/CURRENT"), ""); err == nil || !strings.Contains(err.Error(), "rocksdb and leveldb") {
		t.Errorf("two engines: %v", err)
	}
}
