package command

import (
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// TestStoreFlag reads with the RocksDB library if this build has it, else checks the error.
func TestStoreFlag(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nemo-basic", "bw-basic", "ardb-rocksdb-basic"} {
		src := golden(t, name)
		want := ok(t, "dump", src)
		if testApp().Fallback == nil {
			r := kvferry(t, "dump", "--store", "rocksdb", src)
			if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "-tags rocksdb") {
				t.Errorf("exit %d: %s", r.code, r.stderr)
			}
			continue
		}
		if got := ok(t, "dump", "--store", "rocksdb", src); got != want {
			t.Errorf("%s: RocksDB reads %d bytes of dump, the native reader %d", name, len(got), len(want))
		}
		if name != "ardb-rocksdb-basic" {
			ok(t, "convert", "--store", "rocksdb", src, "blackwidow:"+filepath.Join(t.TempDir(), "new"))
		}
	}
	if r := kvferry(t, "dump", "--store", "levels", golden(t, "nemo-basic")); r.code != cli.ExitUsage ||
		!strings.Contains(r.stderr, `"levels" for "--store"`) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	lmdb := golden(t, "ardb-lmdb-basic")
	if r := kvferry(t, "dump", "--store", "rocksdb", lmdb); r.code != cli.ExitUsage {
		t.Errorf("an LMDB file: exit %d: %s", r.code, r.stderr)
	}
}
