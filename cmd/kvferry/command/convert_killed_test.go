package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// argsEnv makes the test binary run a command line, one word per line.
const argsEnv = "KVFERRY_TEST_ARGS"

// mainEnv makes the test binary kvferry itself, with the handling of signals.
const mainEnv = "KVFERRY_TEST_MAIN"

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

// TestKilledAnywhereAndResumed kills conversions after increasing times, until one finishes first.
func TestKilledAnywhereAndResumed(t *testing.T) {
	t.Parallel()
	src, dir := golden(t, "nemo-basic"), t.TempDir()
	want := treeBytes(t, converted(t, src, "blackwidow"))
	killed := 0
	for n := 1; n < 40; n += 2 {
		dst := filepath.Join(dir, fmt.Sprint("dst", n))
		args := []string{"convert", src, "blackwidow:" + dst, "--workers", "2"}
		cmd := startArgs(t, args)
		time.Sleep(time.Duration(n*n) * time.Millisecond / 2)
		if err := cmd.Process.Kill(); err != nil {
			t.Log(err) // it had finished
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
		if text := fmt.Sprint(cmd.Stderr); text != "" {
			t.Errorf("stderr %s", text)
		}
	}
	if killed == 0 {
		t.Error("nothing was killed")
	}
}

// TestPartsTwiceAtOnce runs each part by two processes at once, one of which kills itself in the middle, at several places
// in the same work directory. The other one finishes the part. The target is that of one run, byte for byte.
func TestPartsTwiceAtOnce(t *testing.T) {
	t.Parallel()
	src, dir := golden(t, "nemo-basic"), fastDir(t)
	now := "--now=2026-01-01T00:00:00Z"
	for name, args := range map[string]func(dst string) []string{
		"convert": func(dst string) []string { return []string{"convert", now, src, "blackwidow:" + dst} },
		"dump": func(dst string) []string {
			return []string{"dump", "--format=parquet", "--memory=256MiB", now, "--output=" + dst, src}
		},
	} {
		one := filepath.Join(dir, name)
		ok(t, args(one)...)
		want, killed := treeBytes(t, one), 0
		for i, at := range some([]string{"write /data/", "rename .half", "link /plan", "sync /data/", "write report.json"}, 2) {
			dst := filepath.Join(dir, fmt.Sprint(name, i))
			for _, part := range []string{"--part=1/2", "--part=2/2"} {
				words := append(args(dst), part)
				dies, lives := startArgs(t, words, dieEnv+"="+at), startArgs(t, words)
				if err := dies.Wait(); err != nil {
					killed++
				}
				if err := lives.Wait(); err != nil {
					t.Errorf("%s, %s: the other process: %v, %s", name, at, err, lives.Stderr)
				}
				if out := ok(t, words...); !strings.Contains(out, "done already") {
					t.Errorf("%s, %s: %s", name, at, out)
				}
			}
			ok(t, append(args(dst), "--finish")...)
			if left, err := filepath.Glob(dst + ".kvferry*"); treeBytes(t, dst) != want || err != nil || len(left) != 1 {
				t.Errorf("%s, %s: another target, or left %q, %v", name, at, left, err)
			}
		}
		if killed == 0 {
			t.Errorf("%s: no process was killed in the middle", name)
		}
	}
}

// startArgs starts a command line in a process of its own.
func startArgs(t *testing.T, args []string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), argsEnv+"="+strings.Join(args, "\n")), env...)
	cmd.Stderr = new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}
