package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/sys/disk"
)

// TestClusterResume interrupts a conversion to a cluster node, whose tables are built from sorted rows at the end, by
// killing the process or failing the disk. The resumed conversion must reuse the rows and write the same bytes as an
// uninterrupted one.
func TestClusterResume(t *testing.T) {
	src, dir := golden(t, "bw-basic"), fastDir(t)
	args := []string{"convert", "--cluster", "--on-conflict", "rename", "--workers", "1", src, "kvrocks:" + filepath.Join(dir, "whole")}
	ok(t, args...)
	want := treeBytes(t, filepath.Join(dir, "whole"))
	dst := filepath.Join(dir, "dst")
	args = append(args[:len(args)-1], "--resume", "kvrocks:"+dst)
	for _, at := range []string{"sync slots/", "write run-", "remove slots", "sync MANIFEST-"} {
		die := errPulled
		if runtime.GOOS != "windows" {
			die = errKilled
		}
		for _, how := range []error{die, errPulled} {
			dies(t, how, at, dst, args)
			if left := entries(t, dir); left != "dst.kvferry whole whole.kvferry-report.json" {
				t.Fatalf("%s, %v: left %s", at, how, left)
			}
		}
	}
	ok(t, args...)
	if rep := reportOf(t, dst); !rep.Timings.Resumed || !rep.Proof.Done {
		t.Errorf("resumed %v, proved %v", rep.Timings.Resumed, rep.Proof.Done)
	}
	if treeBytes(t, dst) != want {
		t.Error("the resumed run wrote something else")
	}
	if left := entries(t, dst); left != "db" {
		t.Errorf("the target holds %s", left)
	}
}

var (
	errPulled = errors.New("the disk is pulled out")
	errKilled = errors.New("the process is killed")
)

// dies converts until a disk operation below dst's working directory. From then on the disk fails, or the process is
// killed.
func dies(t *testing.T, how error, at, dst string, args []string) {
	t.Helper()
	if how == errKilled {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"), dieEnv+"="+at)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("%s: %v, it was not killed: %s", at, err, out)
		}
		return
	}
	first := firstAt(at)
	var hit atomic.Bool
	restore := disk.Inject(func(op, path string) error {
		if strings.HasPrefix(path, dst+".kvferry") && first(op, path) {
			hit.Store(true)
		}
		if hit.Load() { // the disk keeps failing
			return how
		}
		return nil
	})
	r := kvferry(t, args...)
	restore()
	if !hit.Load() || r.code != cli.ExitFailed || !strings.Contains(r.stderr, how.Error()) {
		t.Fatalf("%s: hit %v, exit %d, %s", at, hit.Load(), r.code, r.stderr)
	}
}

// dieEnv makes a process that runs a command line kill itself at a disk operation: its name and part of the path.
const dieEnv = "KVFERRY_TEST_DIE"

// firstAt reports whether an operation is the first one that matches.
func firstAt(at string) func(op, path string) bool {
	name, part, _ := strings.Cut(at, " ")
	var done atomic.Bool
	return func(op, path string) bool {
		return op == name && strings.Contains(path, part) && !done.Swap(true)
	}
}

// dieAt kills the process at an operation.
func dieAt(at string) {
	first := firstAt(at)
	disk.Inject(func(op, path string) error {
		if !first(op, path) {
			return nil
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			panic(err)
		}
		time.Sleep(time.Minute)
		return errKilled
	})
}
