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
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for n := 1; n < 40; n += 2 {
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
		if stderr.Len() > 0 {
			t.Errorf("stderr %s", &stderr)
		}
	}
	if killed == 0 {
		t.Error("nothing was killed")
	}
}
