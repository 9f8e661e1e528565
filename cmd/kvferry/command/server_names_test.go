package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// TestServers checks that a server name in a location selects the format, the layout of a target, and a check of the
// format of a source.
func TestServers(t *testing.T) {
	t.Parallel()
	nemo := golden(t, "nemo-basic")
	for server, dir := range map[string]string{"pika3": "db0/strings", "pika3.5": "db0/strings", "blackwidow": "strings", "pika2": "kv"} {
		dst := filepath.Join(t.TempDir(), "dst")
		if out := ok(t, "convert", "pika2:"+nemo, server+":"+dst); !strings.Contains(out, dst) {
			t.Errorf("%s: %s", server, out)
		}
		if _, err := os.Stat(filepath.Join(dst, dir, "CURRENT")); err != nil {
			t.Errorf("%s: %v", server, err)
		}
		ok(t, "diff", nemo, server+":"+dst)
	}
	flat := filepath.Join(t.TempDir(), "dst")
	ok(t, "convert", "--layout", "flat", nemo, "pika3:"+flat)
	if _, err := os.Stat(filepath.Join(flat, "strings", "CURRENT")); err != nil {
		t.Error(err)
	}
	r := kvferry(t, "inspect", "pika3:"+nemo)
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "is in the format nemo (Pika 1.x to 2.3, on RocksDB 5.0.1), not in that of pika3: leave the name pika3 out") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if r := kvferry(t, "inspect", "pika9:"+nemo); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "nemo, pika2, blackwidow, pika3, pika3.5") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}
