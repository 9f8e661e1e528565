package command

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/sys/disk"
)

// TestOutputPlaces checks that devices and pipes are written to and not replaced, and that a link's target is
// replaced instead of the link.
func TestOutputPlaces(t *testing.T) {
	t.Parallel()
	src := golden(t, "bw-basic")
	want := ok(t, "dump", "--keys-only", src)
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		f, err := os.Open(pipe)
		if err != nil {
			t.Error(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Error(err)
		}
		read <- string(b)
	}()
	ok(t, "dump", "--keys-only", "-o", pipe, src)
	if got := <-read; got != want {
		t.Errorf("the pipe has %d bytes, want %d", len(got), len(want))
	}
	link, file := filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	ok(t, "dump", "--keys-only", "-o", link, src)
	if b, err := os.ReadFile(file); err != nil || string(b) != want {
		t.Errorf("behind the link are %d bytes, %v; want %d", len(b), err, len(want))
	}
	if got := entries(t, dir); got != "file link pipe" {
		t.Errorf("in the directory: %s", got)
	}
	for path, mode := range map[string]os.FileMode{pipe: os.ModeNamedPipe, link: os.ModeSymlink} {
		if st, err := os.Lstat(path); err != nil || st.Mode().Type() != mode {
			t.Errorf("%s is replaced: %v, %v", path, st.Mode(), err)
		}
	}
}

// TestOutputModes: a file that is replaced keeps its mode, and a new one has that of any new file.
func TestOutputModes(t *testing.T) {
	t.Parallel()
	src, dir := golden(t, "bw-basic"), t.TempDir()
	kept, made, plain := filepath.Join(dir, "kept"), filepath.Join(dir, "made"), filepath.Join(dir, "plain")
	f, err := os.Create(plain)
	if err == nil {
		err = errors.Join(f.Close(), os.WriteFile(kept, nil, 0o600), os.Chmod(kept, 0o640))
	}
	if err != nil {
		t.Fatal(err)
	}
	ok(t, "verify", "-o", kept, src)
	ok(t, "verify", "-o", made, src)
	mode := func(path string) os.FileMode {
		st, err := os.Stat(path)
		if err != nil || st.Size() == 0 && path != plain {
			t.Fatal(path, err)
		}
		return st.Mode()
	}
	if mode(kept) != 0o640 || mode(made) != mode(plain) {
		t.Errorf("modes %s, %s; want -rw-r-----, %s", mode(kept), mode(made), mode(plain))
	}
}

// TestOutputStdout checks that a file that is also standard output receives the lines between other output.
func TestOutputStdout(t *testing.T) {
	src := golden(t, "bw-basic")
	want := ok(t, "dump", "--keys-only", src)
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, args := range [][]string{{"dump", "--keys-only", "-o", path, src}, {"dump", "--keys-only", src}} {
		if code := testApp().Run(context.Background(), args, f, io.Discard); code != cli.ExitOK {
			t.Fatalf("exit %d", code)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != want+want {
		t.Errorf("%d bytes, %v; want %d", len(b), err, 2*len(want))
	}
}

// TestOutputApart checks that no output overwrites a file of the source or its logs, under any name, and that such an
// output is refused before the source is read.
func TestOutputApart(t *testing.T) {
	src := golden(t, "bw-basic")
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	if err := os.Mkdir(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"file": filepath.Join(src, "strings", "CURRENT"), "dir": filepath.Join(src, "sets")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(src, "strings", "CURRENT")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dump", "-o", current, src}, "--output " + current + ": is inside"},
		{[]string{"dump", "-o", filepath.Join(src, "new"), src}, "is inside"},
		{[]string{"verify", "-o", filepath.Join(dir, "file"), src}, "is inside"},
		{[]string{"explain", "-o", filepath.Join(dir, "dir", "new"), src, "key"}, "is inside"},
		{[]string{"inspect", "--html", current, src}, "--html " + current + ": is inside"},
		{[]string{"diff", "-o", current, golden(t, "nemo-basic"), src}, "is inside"},
		{[]string{"fingerprint", "--wal-dir", logs, "-o", filepath.Join(logs, "000003.log"), src}, "is inside"},
		{[]string{"dump", "--wal-dir", logs, "--temp-dir", logs, src}, "--temp-dir " + logs + ": is inside"},
		{[]string{"dump", "-o", dir, src}, "is a directory"},
	} {
		r := kvferry(t, c.args...)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, c.want) || r.stdout != "" {
			t.Errorf("kvferry %s: exit %d: %s", strings.Join(c.args, " "), r.code, r.stderr)
		}
	}
	if got := entries(t, dir); got != "dir file logs" {
		t.Errorf("in the directory: %s", got)
	}
}

// TestOutputUnwritable checks that an output that cannot be created is refused before the source is read.
func TestOutputUnwritable(t *testing.T) {
	src, dir := golden(t, "bw-basic"), t.TempDir()
	read := false
	defer disk.Inject(func(op, at string) error {
		read = read || op == "open" && strings.HasSuffix(at, ".sst")
		if op == "create" && strings.HasPrefix(at, dir) {
			return syscall.EACCES
		}
		return nil
	})()
	file := filepath.Join(dir, "out")
	for _, args := range [][]string{{"dump", "-o", file, src}, {"verify", "-o", file, src}, {"inspect", "--html", file, src},
		{"fingerprint", "-o", file, src}, {"explain", "-o", file, src, "key"}, {"diff", "-o", file, src, src}} {
		read = false
		r := kvferry(t, args...)
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "create "+file+": permission denied") || read {
			t.Errorf("kvferry %s: exit %d, read a table: %t: %s", strings.Join(args, " "), r.code, read, r.stderr)
		}
	}
}
