package command

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kvferry/cmd/kvferry/cli"
)

// TestEndlessFiles checks that an endless file given to a flag is refused in one line and within bounded memory.
func TestEndlessFiles(t *testing.T) {
	const zero = "/dev/zero"
	if _, err := os.Stat(zero); err != nil {
		t.Skip(err)
	}
	src, dir := golden(t, "nemo-basic"), t.TempDir()
	spaces, many := filepath.Join(dir, "spaces"), filepath.Join(dir, "many")
	if err := os.WriteFile(spaces, []byte(strings.Repeat(" ", maxFingerprint+1)), 0o644); err != nil {
		t.Fatal(err)
	}
	var keys strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&keys, "key:%d\n", i)
	}
	if err := os.WriteFile(many, []byte(keys.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"dump", "--key-file", zero, src}, cli.ExitUsage, "--key-file " + zero + ": line 1 is longer than any key: at most 8,388,608 bytes, twice as many in hex (see --help)"},
		{[]string{"convert", "--key-file", zero, src, "blackwidow:" + dir + "/dst"}, cli.ExitUsage, "line 1 is longer than any key"},
		{[]string{"dump", "--memory", "32MiB", "--key-file", zero, src}, cli.ExitUsage,
			"line 1: the keys need more memory than is allowed, 8MiB, a quarter of --memory 32MiB: give a larger --memory, or the keys in parts"},
		{[]string{"diff", "--memory", "32MiB", "--key-file", zero, src, src}, cli.ExitUsage, "a quarter of --memory 32MiB"},
		{[]string{"dump", "--memory", "33MiB", "--key-file", many, src}, cli.ExitOK, "no record passes the filter"},
		{[]string{"dump", "-f", zero, src}, cli.ExitUsage, "--file " + zero + ": more than 1MiB: not a file of flags (see --help)"},
		{[]string{"fingerprint", "--check", zero, src}, cli.ExitUsage, zero + ": not a fingerprint: "},
		{[]string{"fingerprint", "--check", spaces, src}, cli.ExitUsage, spaces + ": not a fingerprint: it has 16MiB or more"},
		{[]string{"dump", "--password-file", zero, "redis://127.0.0.1:1"}, cli.ExitUsage, "--password-file " + zero + ": more than 1048576 bytes"},
		{[]string{"dump", "--tls-ca", zero, "rediss://127.0.0.1:1"}, cli.ExitFailed, zero + ": more than 67108864 bytes"},
		{[]string{"dump", "--tls-cert", zero, "--tls-key", zero, "rediss://127.0.0.1:1"}, cli.ExitFailed, zero + ": more than 67108864 bytes"},
		{[]string{"patch", zero, "redis://127.0.0.1:1"}, cli.ExitFailed, "not a patch"},
		{[]string{"dump", "rdb:" + zero}, cli.ExitFailed, zero + ": neither a directory nor a regular file"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := kvferry(t, c.args...)
		runtime.ReadMemStats(&after)
		if r.code != c.code || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("kvferry %s: exit %d: %s", strings.Join(c.args, " "), r.code, r.stderr)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 512<<20 {
			t.Errorf("kvferry %s: %d bytes were allocated", strings.Join(c.args, " "), used)
		}
	}
}

// TestKeysFromPipe checks that a pipe of keys is read only once, even to compare two datasets.
func TestKeysFromPipe(t *testing.T) {
	src := golden(t, "nemo-basic")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error)
	go func() { wrote <- os.WriteFile(pipe, []byte("s1:bigh\n"), 0) }()
	if got := ok(t, "diff", "--key-file", pipe, src, src); !strings.HasPrefix(got, "equal") {
		t.Error(got)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}
