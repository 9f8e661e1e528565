package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/store"
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

// TestHeld: the advice is not BGSAVE, since Ardb's BGSAVE writes no database.
func TestHeld(t *testing.T) {
	for kind, want := range map[string]string{RocksDB: "copy the directory", LevelDB: "--allow-live", LMDB: "SAVE backup"} {
		err := Held(fmt.Errorf("opening: %w", &store.LiveError{Dir: "d", PID: 7}), kind)
		got := err.Error()
		if !strings.Contains(got, "d: held by process 7") || !strings.Contains(got, want) || strings.Contains(got, "BGSAVE") {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// TestOrder: LMDB's directory of namespaces is in bytewise order, the namespaces in the server's order.
func TestOrder(t *testing.T) {
	if c := LMDBOrder("0"); c == nil || c.Name != codec.ComparerName || LMDBOrder(codec.LMDBNamespace) != nil {
		t.Errorf("namespaces are ordered by %v, their directory by %v", c, LMDBOrder(codec.LMDBNamespace))
	}
}
