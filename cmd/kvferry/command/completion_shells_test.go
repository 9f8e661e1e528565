package command

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"kvferry/internal/testkit/redistest"
)

// terminal is an interactive shell in a pseudo terminal.
type terminal struct {
	t      *testing.T
	screen *os.File
	said   chan string
	seen   string
}

// typed types a line and returns what the shell wrote until the line ran with the words wanted.
func (s *terminal) typed(line string, want ...string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.screen, line+"\r"); err != nil {
		s.t.Fatal(err)
	}
	ran := "RAN<" + strings.Join(want, "><") + ">\r\n"
	for late := time.After(time.Minute); ; {
		if before, after, ok := strings.Cut(s.seen, "RAN<"); ok {
			if words, rest, ok := strings.Cut(after, ">\r\n"); ok {
				s.seen = rest
				if got := "RAN<" + words + ">\r\n"; got != ran {
					s.t.Errorf("%q ran as %q, want %q", line, got, ran)
				}
				return before
			}
		}
		select {
		case text, ok := <-s.said:
			if !ok {
				s.t.Fatalf("%q: the shell has ended: %q", line, s.seen)
			}
			s.seen += text
		case <-late:
			s.t.Fatalf("%q: no command ran: %q", line, s.seen)
		}
	}
}

// start starts a shell in a directory where kvferry completes as the product and prints its words else.
func start(t *testing.T, dir, name string, args []string, env ...string) *terminal {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "TERM=xterm", "HOME="+dir, "LC_ALL=C.UTF-8",
		"PATH="+dir+"/bin:"+os.Getenv("PATH"))...)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 160})
	if err != nil {
		t.Fatal(err)
	}
	s := &terminal{t: t, screen: screen, said: make(chan string)}
	done := make(chan struct{})
	go func() {
		defer close(s.said)
		for buf := make([]byte, 4096); ; {
			n, err := screen.Read(buf)
			if err != nil {
				return
			}
			select {
			case s.said <- string(buf[:n]):
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		cmd.Process.Kill()
		cmd.Wait()
		screen.Close()
	})
	return s
}

// executable finds a file of a shell's package: where packages install it, or in the directory of other engines.
func executable(t *testing.T, name string, installed ...string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range []string{"", "*/", "*/*/", "*/*/*/", "*/*/*/*/", "*/*/*/*/*/"} {
		if dir := os.Getenv(redistest.EnginesVariable); dir != "" {
			paths, _ := filepath.Glob(filepath.Join(dir, pattern+name))
			installed = append(installed, paths...)
		}
	}
	for _, path := range installed {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path
		}
	}
	t.Skipf("SKIPPED: needs %s, on the PATH or below the directory that %s names", name, redistest.EnginesVariable)
	return ""
}

// TestShellsComplete types command lines into real shells, each completed by Tab, and compares the words that the shell
// then runs.
func TestShellsComplete(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := shellIn(t, shell, dir)
			for _, c := range []struct{ typed, want string }{
				{"dump rd", "dump rdb:"},
				{"dump rdb:sm", "dump rdb:small.rdb"},
				{"convert sm", "convert small.rdb"},
				{"convert small.rdb rd", "convert small.rdb rdb:"},
				{"convert small.rdb pika4:pl", "convert small.rdb pika4:plain/"},
				{"diff small.rdb ao", "diff small.rdb aof:"},
				{"diff rdb:small.rdb rdb:sm", "diff rdb:small.rdb rdb:small.rdb"},
				{"explain ssdb:pl", "explain ssdb:plain/"},
				{"get s3", "get s3://"},
				{"keys par", "keys parquet:"},
				{"patch sm", "patch small.rdb"},
				{"patch small.rdb unix", "patch small.rdb unix:///"},
				{"verify --against rdb:sm", "verify --against rdb:small.rdb"},
				{"verify --against=rdb:sm", "verify --against=rdb:small.rdb"},
				{"dump small.rdb --db 1", "dump small.rdb --db 12"},
				{"plan small.rdb --db=0,1", "plan small.rdb --db=0,12"},
				{"convert --on-conflict keep=zs", "convert --on-conflict keep=zset"},
				{"inspect --format h", "inspect --format html"},
			} {
				s.typed("kvferry "+c.typed+"\t", strings.Split(c.want, " ")...)
			}
			s.typed(`kvferry convert my\ d`+"\t", "convert", "my dir/")
			s.typed(`kvferry convert my\ dir/ pika4:my\ d`+"\t", "convert", "my dir/", "pika4:my dir/")
			for typed, want := range map[string]string{"dump redis": "a running server", "serve rdb:s": "an object store", "f": "Show"} {
				if said := s.typed("kvferry "+typed+"\t", strings.Fields(typed)...); !strings.Contains(said, want) {
					t.Errorf("%q shows no %q: %q", typed, want, said)
				}
			}
		})
	}
}

// shellIn starts a shell with its completion script in a directory with datasets.
func shellIn(t *testing.T, shell, dir string) *terminal {
	t.Helper()
	path, exe := executable(t, shell), ""
	var err error
	if exe, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/kvferry", fmt.Sprintf("#!/bin/sh\ncase $1 in\n__complete*) %s=1 exec %s \"$@\";;\nesac\nprintf RAN\nprintf '<%%s>' \"$@\"\necho\n",
		mainEnv, exe), 0o755)
	write("small.rdb", "REDIS0009\xfe\x00\x00\x01a\x01b\xfe\x0c\x00\x01a\x01b\xff\x00\x00\x00\x00\x00\x00\x00\x00", 0o644)
	write("plain/file", "", 0o644)
	write("my dir/file", "", 0o644)
	write("script", ok(t, "completion", shell), 0o644)
	switch shell {
	case "bash":
		library := executable(t, "bash-completion/bash_completion", "/usr/share/bash-completion/bash_completion")
		write("inputrc", "set show-all-if-ambiguous on\nset completion-query-items 0\nset page-completions off\nset enable-bracketed-paste off\n",
			0o644)
		write("rc", ". "+library+"\n. "+dir+"/script\n", 0o644)
		return start(t, dir, path, []string{"--noprofile", "--rcfile", filepath.Join(dir, "rc"), "-i"}, "INPUTRC="+dir+"/inputrc")
	case "zsh":
		write(".zshrc", "autoload -U compinit; compinit -u -D\n. "+dir+"/script\n", 0o644)
		return start(t, dir, path, []string{"-d", "-i"}, "ZDOTDIR="+dir)
	}
	return start(t, dir, path, []string{"--no-config", "-i", "-C", "source " + dir + "/script"})
}
