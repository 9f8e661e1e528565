package command

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
)

// mount mounts a file system of some size for the test. It requires root.
func mount(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("only root on Linux can mount")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), mount(t, "1m")
	dst := filepath.Join(dir, "dst")
	r := kvferry(t, "convert", src, "blackwidow:"+dst)
	if !strings.HasPrefix(r.stderr, "kvferry: not enough space: ") || entries(t, dir) != "" {
		t.Errorf("%s left: %s", entries(t, dir), r.stderr)
	}
	r = kvferry(t, "convert", "--force-space", "--discard", src, "blackwidow:"+dst)
	fullDisk(t, &r, dst, "; this conversion left no files behind\n")
	if got := entries(t, dir); got != "" {
		t.Errorf("left %s", got)
	}
	r = kvferry(t, "convert", "--force-space", "--workers", "1", src, "blackwidow:"+dst)
	fullDisk(t, &r, dst, "; the work so far is kept in "+dst+
		".kvferry; continue with\n  kvferry convert --resume --force-space --workers 1 "+src+" blackwidow:"+dst+"\n")
	if got := entries(t, dir); got != "dst.kvferry" {
		t.Errorf("left %s", got)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	ok(t, "convert", "--resume", src, "blackwidow:"+dst)
	ok(t, "diff", src, dst)
}

// fullDisk checks the last line of a conversion whose disk is full.
func fullDisk(t *testing.T, r *result, dst, end string) {
	t.Helper()
	if r.code != cli.ExitFailed || strings.Count(r.stderr, "kvferry: ") != 1 ||
		!strings.HasPrefix(r.stderr, "kvferry: write "+dst+".kvferry/") ||
		strings.Count(r.stderr, ": no space left on device; free some space") != 1 || !strings.HasSuffix(r.stderr, end) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// TestDiskFullFromTheBeginning checks that a conversion leaves no files if even its journal does not fit.
func TestDiskFullFromTheBeginning(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), mount(t, "64k")
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 64<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(dir, "dst")
	for _, args := range [][]string{nil, {"--resume"}} {
		r := kvferry(t, append([]string{"convert", src, "blackwidow:" + dst}, args...)...)
		fullDisk(t, &r, dst, "; this conversion left no files behind\n")
		if got := entries(t, dir); got != "file" {
			t.Errorf("%v: left %s", args, got)
		}
	}
}

// TestFullDiskForOutput checks that an output that does not fit is reported under its given name, and that an
// existing file remains unchanged.
func TestFullDiskForOutput(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), mount(t, "12k")
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"dump", "-o", "new"}, {"dump", "-o", "new.gz"}, {"dump", "-o", "new.zst"}, {"dump", "--raw", "-o", "new"}, {"dump", "--format", "csv", "-o", "new"},
		{"dump", "--format", "hex", "-o", "new"}, {"inspect", "--html", "new"}, {"inspect", "--top", "1000", "--format", "json", "-o", "new"},
		{"dump", "-o", "old"}, {"inspect", "--html", "old"},
	} {
		name := args[len(args)-1]
		path := filepath.Join(dir, name)
		end := "the incomplete file was removed"
		if name == "old" {
			end = "the existing file is unchanged"
		}
		args = append(args[:len(args)-1:len(args)-1], path, src)
		r := kvferry(t, args...)
		want := "kvferry: write " + path + ": no space left on device; " + end + "\n"
		if r.code != cli.ExitFailed || r.stderr != want {
			t.Errorf("kvferry %s: exit %d: %s", strings.Join(args, " "), r.code, r.stderr)
		}
		if b, err := os.ReadFile(old); err != nil || string(b) != "old" || entries(t, dir) != "old" {
			t.Fatalf("kvferry %s: left %s, %q", strings.Join(args, " "), entries(t, dir), b)
		}
	}
}

func TestReadOnlyMount(t *testing.T) {
	dir := mount(t, "64m")
	src, err := fixtures.Extract("nemo-basic", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("remount: %v", err)
	}
	unchanged(t, src)
	converted(t, src, "blackwidow")
	if ok(t, "dump", src) == "" {
		t.Error("an empty dump")
	}
	for at, want := range map[string]string{
		dir:                        "(read-only file system), where the target would be created; choose a writable location\n",
		filepath.Join(dir, "none"): "none does not exist; make it first\n",
	} {
		r := kvferry(t, "convert", src, "blackwidow:"+filepath.Join(at, "dst"))
		if r.code != cli.ExitFailed || strings.Count(r.stderr, "kvferry: ") != 1 || !strings.HasSuffix(r.stderr, want) {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
	}
}
