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
	r := kvferry(t, "convert", src, "blackwidow:"+filepath.Join(dir, "dst"))
	if r.code != ExitFailed || !strings.Contains(r.stderr, "no space left on device") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if got := entries(t, dir); got != "" {
		t.Errorf("left %s", got)
	}
	r = kvferry(t, "dump", src, "-o", filepath.Join(dir, "dump"))
	if r.code != ExitFailed || !strings.Contains(r.stderr, "no space left on device") || entries(t, dir) != "" {
		t.Errorf("exit %d: %s; left %s", r.code, r.stderr, entries(t, dir))
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
	if r := kvferry(t, "convert", src, "blackwidow:"+filepath.Join(dir, "dst")); r.code != ExitFailed || !strings.Contains(r.stderr, "read-only") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
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
	return testApp().Run(context.Background(), strings.Split(args, "\n"), os.Stdout, os.Stderr)
}

// TestKilledAnywhereAndResumed kills conversions after more and more time, until one is done first.
func TestKilledAnywhereAndResumed(t *testing.T) {
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
