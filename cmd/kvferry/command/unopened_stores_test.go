package command

import (
	"os"
	"path/filepath"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
)

// TestDamagedStoresArePassedOver checks that a store that cannot be opened affects only commands that need its
// content.
func TestDamagedStoresArePassedOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ golden, format, store string }{{"nemo-basic", "blackwidow", "zset"}, {"bw-basic", "nemo", "zsets"}} {
		dir := t.TempDir()
		for _, db := range []string{"db0", "db1"} {
			if err := os.Rename(fixtures.Unpack(t, c.golden), filepath.Join(dir, db)); err != nil {
				t.Fatal(err)
			}
		}
		whole := ok(t, "dump", "--now", "1", "--type", "hash,string", dir)
		first := ok(t, "dump", "--now", "1", "--db", "0", dir)
		if err := os.Remove(filepath.Join(dir, "db1", c.store, "CURRENT")); err != nil {
			t.Fatal(err)
		}
		unchanged(t, dir)
		if got := ok(t, "dump", "--now", "1", "--type", "hash,string", dir); got != whole {
			t.Errorf("%s: a dump of other types differs", c.golden)
		}
		if got := ok(t, "dump", "--now", "1", "--db", "0", dir); got != first {
			t.Errorf("%s: a dump of the other database differs", c.golden)
		}
		target := c.format + ":" + filepath.Join(t.TempDir(), "new")
		for _, args := range [][]string{
			{"verify", "--type", "set", dir}, {"verify", "--db", "0", dir}, {"inspect", "--type", "list", dir},
			{"fingerprint", "--db", "0", dir}, {"explain", "--type", "hash", dir, "s1:h1"},
			{"diff", "--type", "hash", dir, dir}, {"convert", "--type", "hash,set", dir, target},
		} {
			ok(t, args...)
		}
		target = c.format + ":" + filepath.Join(t.TempDir(), "new")
		for code, args := range map[int][]string{
			cli.ExitFindings: {"verify", "--type", "zset", dir}, cli.ExitFailed: {"dump", "--db", "1", dir},
		} {
			if r := kvferry(t, args...); r.code != code {
				t.Errorf("%s: %q: exit %d, want %d\n%s", c.golden, args, r.code, code, r.stderr)
			}
		}
		if r := kvferry(t, "convert", "--type", "zset", dir, target); r.code == cli.ExitOK {
			t.Errorf("%s: zsets were converted", c.golden)
		}
	}
}
