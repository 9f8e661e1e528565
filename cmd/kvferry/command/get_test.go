package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/store/rocks/build"
)

// TestGetReadsNoNeighbours damages every data block of a dataset but those near the first keys: get and a prefix find
// these without a word, although nothing else can be read.
func TestGetReadsNoNeighbours(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "src")
	target, err := nemo.New().Create(context.Background(), dir,
		&format.CreateOptions{Create: build.Create, DBs: []string{"0"}, Memory: 1 << 20, Now: fixtures.Clock})
	if err != nil {
		t.Fatal(err)
	}
	if err := fixtures.Mix(1, 50000).Build(context.Background(), target, 1<<20); err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, typ := range []string{"hash", "zset"} {
		tables, err := filepath.Glob(filepath.Join(dir, typ, "*.sst"))
		if err != nil || len(tables) == 0 {
			t.Fatalf("%q, %v", tables, err)
		}
		for _, table := range tables {
			data, err := os.ReadFile(table)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) < 100<<10 {
				continue
			}
			for at := len(data) * 3 / 10; at < len(data)*7/10; at += 1000 { // far from both ends: metas and indexes lie there
				data[at] ^= 0xff
				damaged++
			}
			if err := os.WriteFile(table, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if damaged < 100 {
		t.Fatalf("%d bytes damaged", damaged)
	}
	for _, args := range [][]string{
		{"get", "--type", "hash", dir, "account:hash:000000000", "account:hash:000000001"},
		{"keys", "--type", "hash", dir, "account:hash:00000000"},
		{"dump", "--type", "zset", "--match", "account:zset:000000000", dir},
		{"fingerprint", "--type", "zset", "--range", "account:zset:000000000..account:zset:000000002", dir},
	} {
		if r := kvferry(t, args...); r.code != cli.ExitOK || r.stderr != "" {
			t.Errorf("%s: exit %d, %s", strings.Join(args, " "), r.code, r.stderr)
		}
	}
	if r := kvferry(t, "dump", "--type", "hash", dir); r.code == cli.ExitOK {
		t.Error("dump of all hashes: no damage is found: the test shows nothing")
	}
}
