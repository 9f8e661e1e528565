package command

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/sys/disk"
)

// TestFullTempDir checks that the error about a full directory for temporary files names --temp-dir once.
func TestFullTempDir(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dump.rdb")
	ok(t, "convert", "--type", "set", golden(t, "nemo-basic"), "rdb:"+file)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".gz", packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	temp, system := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", system)
	defer disk.Inject(func(op, at string) error {
		if op == "write" && (strings.HasPrefix(at, temp) || strings.HasPrefix(at, system)) {
			return syscall.ENOSPC
		}
		return nil
	})()
	for dir, args := range map[string][]string{temp: {"dump", "--temp-dir", temp, file + ".gz"}, system: {"verify", file + ".gz"}} {
		r := kvferry(t, args...)
		want := "free some space in " + dir + ", or name another directory for temporary files with --temp-dir"
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s%.200s", args, r.code, r.stderr, r.stdout)
		}
	}
	// An output in the same directory is not a temporary file.
	if r := kvferry(t, "dump", "--type", "string", "-o", filepath.Join(system, "out"),
		golden(t, "bw-basic")); r.code != cli.ExitFailed || strings.Contains(r.stderr, "--temp-dir") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}
