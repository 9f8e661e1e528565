package command

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/sys/disk"
)

// closeDir makes a directory unreadable.
func closeDir(dir string) (restore func()) {
	return disk.Inject(func(op, at string) error {
		if at == dir && op == "readdir" || strings.HasPrefix(at, dir+string(filepath.Separator)) {
			return syscall.EACCES
		}
		return nil
	})
}

// TestClosedDirectories checks that an unreadable directory fails only commands that need its content, and that one
// outside the format's stores causes a warning.
func TestClosedDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, db := range []string{"db0", "db1"} {
		if err := os.CopyFS(filepath.Join(dir, db), os.DirFS(golden(t, "bw-basic"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o755); err != nil {
		t.Fatal(err)
	}
	target := func() string { return "blackwidow:" + filepath.Join(t.TempDir(), "new") }
	for _, c := range []struct {
		closed string
		args   []string // flags that exclude the directory
	}{{"db1", []string{"--db", "0"}}, {"db1/zsets", []string{"--db", "0"}}, {"db1/zsets", []string{"--type", "string"}},
		{"db0/zsets", []string{"--type", "string"}}} {
		restore := closeDir(filepath.Join(dir, c.closed))
		for _, location := range []string{dir, "blackwidow:" + dir} {
			for _, args := range [][]string{{"verify", location}, {"dump", location}, {"fingerprint", location},
				{"convert", location, target()}} {
				if r := kvferry(t, append(args, c.args...)...); r.code != cli.ExitOK || strings.Contains(r.stdout+r.stderr, "store-not-read") {
					t.Errorf("%s closed: %s %s: exit %d: %s%.300s", c.closed, args, c.args, r.code, r.stderr, r.stdout)
				}
				if args[0] == "convert" {
					continue
				}
				if r := kvferry(t, args...); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "permission denied; kvferry runs as user") {
					t.Errorf("%s closed: %s: exit %d: %s", c.closed, args, r.code, r.stderr)
				}
			}
		}
		restore()
	}
	defer closeDir(filepath.Join(dir, "lost+found"))()
	if r := kvferry(t, "verify", dir); r.code != cli.ExitOK || !strings.Contains(r.stdout, "warning store-not-read") ||
		!strings.Contains(r.stdout, "[lost+found]") {
		t.Errorf("lost+found closed: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := kvferry(t, "convert", dir, target()); r.code != cli.ExitOK {
		t.Errorf("lost+found closed: convert: exit %d: %s", r.code, r.stderr)
	}
}

// TestClosedDataset checks that a dataset without readable directories gives an error about access, as its format
// cannot be detected.
func TestClosedDataset(t *testing.T) {
	dir := golden(t, "kvrocks-mixed")
	defer closeDir(filepath.Join(dir, "db"))()
	for _, location := range []string{dir, "kvrocks:" + dir} {
		if r := kvferry(t, "verify", location); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "permission denied; kvferry runs as user") {
			t.Errorf("%s: exit %d: %s", location, r.code, r.stderr)
		}
	}
}
