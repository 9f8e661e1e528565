package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
)

// TestPipesInDatasets checks that no command waits for a pipe without a writer in the place of a dataset's file.
func TestPipesInDatasets(t *testing.T) {
	t.Parallel()
	const regular = "not a regular file"
	for _, c := range []struct {
		golden, file string
		want         string // text of the error; "" if the file is not needed
	}{
		{"nemo-basic", "kv/CURRENT", regular},
		{"nemo-basic", "kv/LOCK", regular},
		{"nemo-basic", "kv/MANIFEST-*", regular},
		{"nemo-basic", "kv/000012.sst", regular},
		{"nemo-basic", "kv/*.log", regular},
		{"nemo-basic", "kv/OPTIONS-000008", ""}, // wal_dir in OPTIONS is needed only if the logs are missing
		{"ardb-leveldb-basic", "leveldb/CURRENT", regular},
		{"ardb-lmdb-basic", "lmdb/data.mdb", "not a database"},
		{"ardb-lmdb-basic", "lmdb/lock.mdb", regular},
	} {
		t.Run(c.golden+" "+filepath.Base(c.file), func(t *testing.T) {
			src := fixtures.Unpack(t, c.golden)
			path := globOne(t, src, c.file)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, cmd := range []string{"dump --keys-only", "verify", "convert --dry-run"} {
				args := append(strings.Fields(cmd), src)
				if strings.HasPrefix(cmd, "convert") {
					args = append(args, "blackwidow:"+filepath.Join(t.TempDir(), "dst"))
				}
				done := make(chan result, 1)
				go func() { done <- kvferry(t, args...) }()
				select {
				case r := <-done:
					if said := r.stdout + r.stderr; !strings.Contains(said, c.want) || (r.code == cli.ExitOK) != (c.want == "") {
						t.Errorf("%s: exit %d: %s", cmd, r.code, r.stderr)
					}
				case <-time.After(30 * time.Second):
					t.Fatalf("%s waits for a writer", cmd)
				}
			}
		})
	}
}

// TestSourceFromPipe checks that a pipe as a source is refused, with advice.
func TestSourceFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{"": "write rdb:- for the source", "rdb:": "write rdb:- for the source", "aof:": "write it to a file first",
		"nemo:": "nor a regular file\n"} {
		if r := kvferry(t, "dump", format+pipe); r.code != cli.ExitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s", format, r.code, r.stderr)
		}
	}
}
