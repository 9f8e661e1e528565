package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
)

// moveLogs moves the logs of a dataset's stores to a new directory, which it returns.
func moveLogs(t *testing.T, dataset string) string {
	t.Helper()
	to := t.TempDir()
	logs, err := filepath.Glob(filepath.Join(dataset, "*", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%s: %d logs, %v", dataset, len(logs), err)
	}
	for _, from := range logs {
		dir := filepath.Join(to, filepath.Base(filepath.Dir(from)))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(from, filepath.Join(dir, filepath.Base(from))); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestLogsOfEachSide checks that every form of comparison reads each side with its own logs.
func TestLogsOfEachSide(t *testing.T) {
	t.Parallel()
	whole, a, b := golden(t, "nemo-basic"), fixtures.Unpack(t, "nemo-basic"), fixtures.Unpack(t, "nemo-basic")
	logsA, logsB := moveLogs(t, a), moveLogs(t, b)
	job := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(job, []byte("wal-dir: "+logsA+"\nwal-dir-b: "+logsB+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"diff", "--wal-dir", logsA, "--wal-dir-b", logsB, a, b}, cli.ExitOK},
		{[]string{"diff", "--direct", "--wal-dir", logsA, "--wal-dir-b", logsB, a, b}, cli.ExitOK},
		{[]string{"diff", "-f", job, a, b}, cli.ExitOK},
		{[]string{"verify", "-f", job, "--against", b, a}, cli.ExitOK},
		{[]string{"diff", "--wal-dir", logsA, a, whole}, cli.ExitOK}, // the other side's logs are in place
		{[]string{"diff", "--wal-dir-b", logsB, whole, b}, cli.ExitOK},
		{[]string{"verify", "--wal-dir-b", logsB, "--against", b, whole}, cli.ExitOK},
		{[]string{"diff", "--wal-dir", logsA, a, b}, cli.ExitFindings}, // some rows of B are only in its logs
		{[]string{"diff", "--wal-dir-b", logsB, a, b}, cli.ExitFindings},
	} {
		if r := kvferry(t, c.args...); r.code != c.code {
			t.Errorf("kvferry %s: exit %d\n%s%s", strings.Join(c.args, " "), r.code, r.stdout, r.stderr)
		}
	}
	// Without its logs, each side names its stores and the flag for its logs.
	r := kvferry(t, "diff", a, b)
	for text, n := range map[string]int{
		a + ": error no-log: no log": 1, a + ": error no-log: the same [": maxNoted - 1, "pass --wal-dir with": 1,
		b + ": error no-log: no log": 1, b + ": error no-log: the same [": maxNoted - 1, "pass --wal-dir-b with": 1,
		"[hash/MANIFEST-": 2, "[kv/MANIFEST-": 2, "[list/MANIFEST-": 2, "[set/MANIFEST-": 2, "[zset/MANIFEST-": 2,
	} {
		if got := strings.Count(r.stderr, text); got != n {
			t.Errorf("%d times %q, want %d:\n%s", got, text, n, r.stderr)
		}
	}
	for text, args := range map[string][]string{
		"--wal-dir-b goes with --against":         {"verify", "--wal-dir-b", logsB, a},
		"--wal-dir-b " + b + "/none: no such dir": {"diff", "--wal-dir-b", b + "/none", whole, b},
		"is inside":                 {"diff", "--wal-dir-b", logsB, "-o", filepath.Join(logsB, "out"), whole, b},
		"has no flag \"wal-dir-b\"": {"dump", "-f", job, a},
	} {
		if r := kvferry(t, args...); r.code != cli.ExitUsage || !strings.Contains(r.stderr, text) {
			t.Errorf("kvferry %s: exit %d: %s", strings.Join(args, " "), r.code, r.stderr)
		}
	}
	for _, name := range []string{"diff", "verify"} {
		if _, directive := completed(t, name, "--wal-dir-b", ""); directive != ofDirs {
			t.Errorf("kvferry %s --wal-dir-b is completed with %s", name, directive)
		}
	}
}

// TestComparingWithLogs checks that the comparison command printed by a conversion finds the source's logs.
func TestComparingWithLogs(t *testing.T) {
	src := fixtures.Unpack(t, "ardb-rocksdb-basic")
	logs := moveLogs(t, src)
	dst := filepath.Join(t.TempDir(), "dst")
	out := ok(t, "convert", "--wal-dir", logs, "--type", "string,hash,list,set,zset", "--allow-loss", "expiry-ms", src,
		"blackwidow:"+dst)
	_, line, found := strings.Cut(out, "to compare source and copy: kvferry ")
	line, _, _ = strings.Cut(line, "\n")
	if !found || !strings.Contains(line, "--wal-dir="+logs) {
		t.Fatalf("the command is %q", line)
	}
	if got := ok(t, commandWords(line)...); !strings.Contains(got, "\nequal as converted: ") {
		t.Errorf("kvferry %s: %s", line, got)
	}
}
