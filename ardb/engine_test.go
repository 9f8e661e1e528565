package ardb

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
		{[]string{"rocksdb/CURRENT", "rocksdb/IDENTITY"}, "", "rocksdb", kindRocksDB},
		{[]string{"leveldb/CURRENT"}, "", "leveldb", kindLevelDB},
		{[]string{"lmdb/data.mdb"}, "", "lmdb", kindLMDB},
		{[]string{"CURRENT", "OPTIONS-000005"}, "", "", kindRocksDB},
		{[]string{"CURRENT", "000005.sst"}, "", "", kindRocksDB},
		{[]string{"CURRENT", "000005.ldb", "000004.sst"}, "", "", kindLevelDB},
		{[]string{"CURRENT", "000005.sst"}, kindLevelDB, "", kindLevelDB},
		{[]string{"data.mdb"}, "", "", kindLMDB},
		{[]string{"rocksdb/CURRENT", "leveldb/CURRENT"}, kindLevelDB, "leveldb", kindLevelDB},
		{nil, kindRocksDB, "rocksdb", kindRocksDB},
	} {
		dir := make(tt.files...)
		home, kind, err := engineOf(dir, tt.kind)
		if err != nil || kind != tt.want || home != filepath.Join(dir, tt.sub) {
			t.Errorf("%q: %s, %s, %v", tt.files, home, kind, err)
		}
	}
	if _, _, err := engineOf(make("rocksdb/CURRENT", "leveldb/CURRENT"), ""); err == nil || !strings.Contains(err.Error(), "rocksdb and leveldb") {
		t.Errorf("two engines: %v", err)
	}
}

// TestHeld: the advice is not BGSAVE, since Ardb's BGSAVE writes no database.
func TestHeld(t *testing.T) {
	for kind, want := range map[string]string{kindRocksDB: "copy the directory", kindLevelDB: "--allow-live", kindLMDB: "SAVE backup"} {
		err := heldError(fmt.Errorf("opening: %w", &store.LiveError{Dir: "d", PID: 7}), kind)
		got := err.Error()
		if !strings.Contains(got, "d: held by process 7") || !strings.Contains(got, want) || strings.Contains(got, "BGSAVE") {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// TestOrder: LMDB's directory of namespaces is in bytewise order, the namespaces in the server's order.
func TestOrder(t *testing.T) {
	if c := lmdbOrder("0"); c == nil || c.Name != codec.ComparerName || lmdbOrder(codec.LMDBNamespace) != nil {
		t.Errorf("namespaces are ordered by %v, their directory by %v", c, lmdbOrder(codec.LMDBNamespace))
	}
}
