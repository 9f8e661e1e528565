package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kvferry/fixtures"
)

// mount makes a file system of some size for the test. Only root may.
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
	fullDisk(t, &r, dst, "; this conversion left nothing behind\n")
	if got := entries(t, dir); got != "" {
		t.Errorf("left %s", got)
	}
	r = kvferry(t, "convert", "--force-space", "--workers", "1", src, "blackwidow:"+dst)
	fullDisk(t, &r, dst, "; the work so far is kept in "+dst+".kvferry; continue with\n  kvferry convert --resume --force-space --workers 1 "+src+" blackwidow:"+dst+"\n")
	if got := entries(t, dir); got != "dst.kvferry" {
		t.Errorf("left %s", got)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	ok(t, "convert", "--resume", src, "blackwidow:"+dst)
	ok(t, "diff", src, dst)
}

// fullDisk checks the line that a conversion ends with when its disk is full.
func fullDisk(t *testing.T, r *result, dst, end string) {
	t.Helper()
	if r.code != ExitFailed || strings.Count(r.stderr, "kvferry: ") != 1 || !strings.HasPrefix(r.stderr, "kvferry: write "+dst+".kvferry/") ||
		strings.Count(r.stderr, ": no space left on device; free some space") != 1 || !strings.HasSuffix(r.stderr, end) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// TestDiskFullFromTheBeginning: where not even the journal has room, nothing is left either.
func TestDiskFullFromTheBeginning(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), mount(t, "64k")
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 64<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(dir, "dst")
	for _, args := range [][]string{nil, {"--resume"}} {
		r := kvferry(t, append([]string{"convert", src, "blackwidow:" + dst}, args...)...)
		fullDisk(t, &r, dst, "; this conversion left nothing behind\n")
		if got := entries(t, dir); got != "file" {
			t.Errorf("%v: left %s", args, got)
		}
	}
}

// TestFullDiskForOutput: an output for which there is no room is called as it was given, and what was there stays.
func TestFullDiskForOutput(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), mount(t, "12k")
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"dump", "-o", "new"}, {"dump", "-o", "new.gz"}, {"dump", "-o", "new.zst"}, {"dump", "--raw", "-o", "new"}, {"dump", "--format", "csv", "-o", "new"},
		{"dump", "--format", "hex", "-o", "new"}, {"inspect", "--html", "new"}, {"inspect", "--top", "1000", "--json", "-o", "new"},
		{"dump", "-o", "old"}, {"inspect", "--html", "old"},
	} {
		name := args[len(args)-1]
		path := filepath.Join(dir, name)
		end := "nothing is left of it"
		if name == "old" {
			end = "the file that is there is as it was"
		}
		args = append(args[:len(args)-1:len(args)-1], path, src)
		r := kvferry(t, args...)
		if want := "kvferry: write " + path + ": no space left on device; " + end + "\n"; r.code != ExitFailed || r.stderr != want {
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
		if r.code != ExitFailed || strings.Count(r.stderr, "kvferry: ") != 1 || !strings.HasSuffix(r.stderr, want) {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	src := fixtures.Unpack(t, "nemo-basic")
	path := filepath.Join(src, "set", "CURRENT")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	r := kvferry(t, "convert", src, "blackwidow:"+filepath.Join(t.TempDir(), "dst"))
	if r.code != ExitFailed || !strings.Contains(r.stderr, "permission denied") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// argsEnv makes the test binary run a command line, one word a line.
const argsEnv = "KVFERRY_TEST_ARGS"

func runArgs(args string) int {
	app := testApp()
	if at := os.Getenv(dieEnv); at != "" {
		dieAt(at)
	}
	if os.Getenv(limitEnv) != "" {
		app.LimitMemory = limitMemory
		defer tellPeak()
	}
	return app.Run(context.Background(), strings.Split(args, "\n"), os.Stdout, os.Stderr)
}

// TestKilledAnywhereAndResumed kills conversions after more and more time, until one is done first.
func TestKilledAnywhereAndResumed(t *testing.T) {
	t.Parallel()
	src, dir := golden(t, "nemo-basic"), t.TempDir()
	want := treeBytes(t, converted(t, src, "blackwidow"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for n := 1; n < 40; n++ {
		dst := filepath.Join(dir, fmt.Sprint("dst", n))
		args := []string{"convert", src, "blackwidow:" + dst, "--workers", "2"}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(n*n) * time.Millisecond / 2)
		if err := cmd.Process.Kill(); err != nil {
			t.Log(err) // it was done
		}
		if cmd.Wait() == nil {
			break
		}
		killed++
		if _, err := os.Stat(dst); err == nil {
			if treeBytes(t, dst) != want {
				t.Errorf("published half after %d kills", n)
			}
			if _, err := os.Stat(dst + ".kvferry"); err != nil {
				continue // killed after its last step
			}
		}
		ok(t, append(args, "--resume")...)
		if treeBytes(t, dst) != want {
			t.Errorf("killed after %v: the resumed run wrote something else", time.Duration(n*n)*time.Millisecond/2)
		}
		if left := strings.Fields(entries(t, dir)); len(left) > 2*n {
			t.Errorf("left %v", left)
		}
		if stderr.Len() > 0 {
			t.Errorf("stderr %s", &stderr)
		}
	}
	if killed == 0 {
		t.Error("nothing was killed")
	}
}
