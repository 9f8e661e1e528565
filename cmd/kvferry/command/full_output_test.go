package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// full runs a command line with a full disk as standard output.
func full(t *testing.T, args ...string) result {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var stderr bytes.Buffer
	code := testApp().Run(context.Background(), args, f, &stderr)
	return result{code: code, stderr: stderr.String()}
}

// TestOutputFull checks that a command fails with an error if it cannot write to standard output, whichever code
// wrote.
func TestOutputFull(t *testing.T) {
	src, other := golden(t, "bw-basic"), golden(t, "nemo-basic")
	part := filepath.Join(t.TempDir(), "part.json")
	ok(t, "fingerprint", "--part", "1/1", "--now", "2027-01-01", "-o", part, src)
	moves := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(moves, []byte("datasets: [{source: "+src+", target: nemo:/x}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := [][]string{
		{"merge", part}, {"fleet", moves}, {"--help"}, {"--version"}, {}, {"help"}, {"help", "convert"}, {"version"}, {"formats"}, {"formats", "--format", "markdown"},
		{"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"}, {"completion", "powershell"},
		{"convert", "--dry-run", src, "blackwidow:" + filepath.Join(t.TempDir(), "dst")},
		{"plan", src, "blackwidow:" + filepath.Join(t.TempDir(), "dst")},
		{"dump", src}, {"dump", "--format", "csv", src}, {"dump", "--raw", src}, {"dump", "--format", "hex", src},
		{"verify", src}, {"verify", "--format", "sarif", src}, {"verify", "--against", other, src},
		{"diff", src, other}, {"diff", src, src}, {"diff", "--format", "json", src, other},
		{"fingerprint", src}, {"inspect", src}, {"inspect", "--format", "json", src}, {"explain", src, "nothing"},
		{"keys", src}, {"serve", "--port", "0", src}, {"get", src, "hex:00"},
	}
	for _, cmd := range testApp().Root().Commands() {
		lines = append(lines, []string{cmd.Name(), "--help"})
		if cmd.Name() == "patch" {
			continue // it needs a server: TestPatch
		}
		if !slices.ContainsFunc(lines, func(args []string) bool {
			return len(args) > 0 && args[0] == cmd.Name() && !slices.Contains(args, "--help")
		}) {
			t.Errorf("kvferry %s is not tried", cmd.Name())
		}
	}
	for _, args := range lines {
		r := full(t, args...)
		lines := strings.SplitAfter(r.stderr, "\n")
		last := lines[max(0, len(lines)-2)]
		if r.code != cli.ExitFailed || strings.Count(last, "no space left on device") != 1 ||
			strings.Count(r.stderr, "no space left") != 1 {
			t.Errorf("kvferry %s: exit %d: %s", strings.Join(args, " "), r.code, r.stderr)
		}
	}
}

// TestReportFull checks that a conversion is complete if only printing its report fails, and that the error names the
// report's file.
func TestReportFull(t *testing.T) {
	src, dst := golden(t, "bw-basic"), filepath.Join(t.TempDir(), "dst")
	r := full(t, "convert", src, "blackwidow:"+dst)
	want := "kvferry: " + dst + " is complete, but its report could not be printed; it is in " + dst + ".kvferry-report.json: "
	if r.code != cli.ExitFailed || !strings.HasPrefix(r.stderr, want) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	ok(t, "diff", src, dst)
}

// TestClosedPipe checks that the process exits silently, as if by SIGPIPE, when the reader closes standard output, as
// head does.
func TestClosedPipe(t *testing.T) {
	src := golden(t, "nemo-basic")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"help"}, {"--help"}, {"formats"}, {"completion", "bash"}, {"dump", src}, {"inspect", src}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var stderr bytes.Buffer
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"))
		cmd.Stdout, cmd.Stderr = w, &stderr
		err = cmd.Run()
		w.Close()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE || stderr.Len() > 0 {
			t.Errorf("kvferry %s: %v: %s", strings.Join(args, " "), err, &stderr)
		}
	}
}
