package command

import (
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// TestMisnamed checks that a flag that names an object missing from the dataset is a usage error in every command,
// and that the error lists the existing names.
func TestMisnamed(t *testing.T) {
	src, other := golden(t, "nemo-basic"), golden(t, "bw-basic")
	dst := "blackwidow:" + filepath.Join(t.TempDir(), "dst")
	for _, args := range [][]string{
		{"convert", "--db", "9", src, dst}, {"convert", "--dry-run", "--db", "9", src, dst},
		{"dump", "--db", "9", src}, {"dump", "--raw", "--db", "9", src}, {"dump", "--dead", "--db", "9", src}, {"verify", "--db", "9", src},
		{"verify", "--db", "9", "--against", other, src}, {"diff", "--db", "9", src, other}, {"diff", "--direct", "--db", "9", src, other},
		{"diff", "--map-db", "9=0", src, other}, {"diff", "--map-db", "0=9", src, other},
		{"fingerprint", "--db", "9", src}, {"inspect", "--db", "9", src}, {"explain", "--db", "9", src, "key"},
		{"dump", "--raw", "--keyspace", "9", src},
	} {
		r := kvferry(t, args...)
		if r.code != cli.ExitUsage || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, ` "9" in `) ||
			!strings.Contains(r.stderr, ": want \"") {
			t.Errorf("kvferry %s: exit %d: %s%s", strings.Join(args, " "), r.code, r.stderr, r.stdout)
		}
	}
}
