package command

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"golang.org/x/sys/unix"

	"kvferry/fixtures"
)

// TestTranscripts replays testdata: command lines through the real command tree, in process, with a
// fixed clock. Every command is checked to leave the directory "src" and the goldens as they are.
//
//	run                     the command lines of the input; $DIR is a directory of the test's own; < FILE at the end as in a shell
//	golden NAME as=PATH     unpack a golden database
//	write PATH              make a file of the input
//	mkdir PATH              make directories
//	rm PATH                 remove a tree
//	link PATH to=TARGET     make a symbolic link
//	cut PATH at=N           cut a file after N bytes, from the end when negative
//	flip PATH at=N          invert a byte
//	ls PATH                 list a directory
//	hold PATH               lock a file from another process, until "release"
func TestTranscripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &transcript{t: t, dir: t.TempDir()}
		t.Cleanup(s.release)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.step(d) })
	})
}

type transcript struct {
	t       *testing.T
	dir     string
	sources []string
	holder  *exec.Cmd
}

func (s *transcript) path(d *datadriven.TestData) string {
	if len(d.CmdArgs) == 0 {
		d.Fatalf(s.t, "no path")
	}
	return filepath.Join(s.dir, d.CmdArgs[0].Key)
}

func (s *transcript) step(d *datadriven.TestData) string {
	var err error
	switch d.Cmd {
	case "run":
		return s.run(d.Input)
	case "ls":
		return "[" + entries(s.t, s.path(d)) + "]\n"
	case "golden":
		err = s.golden(d)
	case "write":
		err = os.WriteFile(s.path(d), []byte(d.Input), 0o644)
	case "mkdir":
		err = os.MkdirAll(s.path(d), 0o755)
	case "rm":
		err = os.RemoveAll(s.path(d))
	case "link":
		err = os.Symlink(d.CmdArgs[1].Vals[0], s.path(d))
	case "cut", "flip":
		err = s.damage(d)
	case "hold":
		s.hold(s.path(d))
	case "release":
		s.release()
	default:
		d.Fatalf(s.t, "unknown command %s", d.Cmd)
	}
	if err != nil {
		d.Fatalf(s.t, "%v", err)
	}
	return ""
}

// run runs command lines and checks that they do not change the sources.
func (s *transcript) run(input string) string {
	var out strings.Builder
	for _, line := range strings.Split(input, "\n") {
		args := commandWords(strings.ReplaceAll(line, "$DIR", s.dir))
		before := map[string]string{}
		for _, src := range s.sources {
			before[src] = treeState(s.t, src)
		}
		r := s.kvferry(args[1:])
		for src, hash := range before {
			if treeState(s.t, src) != hash {
				s.t.Errorf("%s: changed %s", line, src)
			}
		}
		out.WriteString(r.stdout)
		for _, l := range strings.SplitAfter(r.stderr, "\n") {
			if l != "" {
				out.WriteString("stderr: " + l)
			}
		}
		fmt.Fprintf(&out, "exit %d\n", r.code)
	}
	return scrub(out.String(), s.dir)
}

// kvferry runs a command line. Standard input is empty unless the line ends in < and a file name.
func (s *transcript) kvferry(args []string) result {
	if n := len(args) - 2; n >= 0 && args[n] == "<" {
		f, err := os.Open(args[n+1])
		if err != nil {
			s.t.Fatal(err)
		}
		defer f.Close()
		return kvferryFrom(s.t, f, args[:n]...)
	}
	return kvferryFrom(s.t, strings.NewReader(""), args...)
}

// treeState hashes the file metadata of a tree. Every write changes a file's ctime, which cannot be set, so an equal
// state means equal content, and files need not be read after every command.
func treeState(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		fmt.Fprintf(&out, "%q %d %o %d %v %v\n", path, st.Ino, st.Mode, st.Size, st.Mtim, st.Ctim)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// commandWords splits a command line at spaces. Single quotes group words.
func commandWords(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

func (s *transcript) golden(d *datadriven.TestData) error {
	name := "src"
	for _, a := range d.CmdArgs[1:] {
		name = a.Vals[0]
	}
	from, err := fixtures.Extract(d.CmdArgs[0].Key, s.t.TempDir())
	if err != nil {
		return err
	}
	to := filepath.Join(s.dir, name)
	s.sources = append(s.sources, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// damage truncates a file or inverts one of its bytes. A negative at counts from the end. A pattern in the path must
// match one file.
func (s *transcript) damage(d *datadriven.TestData) error {
	paths, err := filepath.Glob(s.path(d))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("%s: no such file (%v)", s.path(d), err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		return err
	}
	at, err := strconv.Atoi(d.CmdArgs[1].Vals[0])
	if err != nil {
		return err
	}
	if at < 0 {
		at += len(data)
	}
	if d.Cmd == "cut" {
		data = data[:at]
	} else {
		data[at] ^= 0xFF
	}
	return os.WriteFile(paths[0], data, 0o644)
}

// holdEnv makes the test binary lock the file it names and wait to be killed.
const holdEnv = "KVFERRY_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		holdForever(path)
	}
	if args := os.Getenv(argsEnv); args != "" {
		os.Exit(runArgs(args))
	}
	if os.Getenv(mainEnv) != "" {
		stopAt(os.Getenv(stopEnv))
		os.Exit(Main(Build{}))
	}
	os.Exit(m.Run())
}

// holdForever locks a file like RocksDB, prints a line, and waits for the end of its input.
func holdForever(path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	fmt.Println(err)
	bufio.NewReader(os.Stdin).ReadByte()
	os.Exit(0)
}

func (s *transcript) hold(path string) {
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	if _, err := cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.holder = cmd
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		s.t.Fatalf("lock %s: %s %v", path, line, err)
	}
}

func (s *transcript) release() {
	if s.holder == nil {
		return
	}
	if err := s.holder.Process.Kill(); err != nil {
		s.t.Error(err)
	}
	s.holder.Wait() // the error is that it was killed
	s.holder = nil
}

func TestWords(t *testing.T) {
	got := fmt.Sprintf("%q", commandWords("kvferry dump --match 'a b*' x"))
	if want := `["kvferry" "dump" "--match" "a b*" "x"]`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestScrub(t *testing.T) {
	if got := scrub("/tmp/x/dst held by process 12", "/tmp/x"); got != "$DIR/dst held by process PID" {
		t.Error(got)
	}
}
