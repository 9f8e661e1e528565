//go:build unix

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/report"
	"kvferry/format"
	"kvferry/internal/pass/progress"
	"kvferry/internal/text/page"
	"kvferry/redis"
	"kvferry/redis/live"
	"kvferry/store"
)

// slowly makes opening a store take this long.
func slowly(a *App, delay time.Duration) {
	for i := range a.Drivers {
		open := a.Drivers[i].Open
		a.Drivers[i].Open = func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
			time.Sleep(delay)
			return open(ctx, dir, o)
		}
	}
}

// TestProgressOnTerminal runs commands on a pseudo-terminal. Opening the source takes longer than the first draw of a
// bar.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel() // it sleeps
	src := golden(t, "nemo-basic")
	for _, args := range [][]string{
		{"convert", src, "blackwidow:" + filepath.Join(t.TempDir(), "dst")},
		{"convert", "-n", src, "blackwidow:" + filepath.Join(t.TempDir(), "dst")},
		{"verify", src},
		{"inspect", src},
		{"fingerprint", src},
		{"diff", src, src, "--direct"},
		{"dump", src, "-o", filepath.Join(t.TempDir(), "out")},
		{"dump", src}, // standard output is a file or a pipe
	} {
		shown := onTerminal(t, args)
		if !strings.Contains(shown, "read") && !strings.Contains(shown, "compare") && args[0] != "convert" {
			t.Errorf("%s: no step in %q", args, shown)
		}
		if args[0] == "convert" && !strings.Contains(shown, "plan (1 of") {
			t.Errorf("convert does not show that it plans: %q", shown)
		}
	}
}

// onTerminal runs a command with a terminal as standard error and returns the output there.
func onTerminal(t *testing.T, args []string) string {
	t.Helper()
	screen, stderr, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	app := testApp()
	app.Terminal = true
	slowly(app, 2*progress.Every/5) // five stores
	var shown bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(&shown, screen) // ends with an error when the other side is closed
	}()
	if code := app.Run(context.Background(), args, io.Discard, stderr); code != cli.ExitOK {
		t.Errorf("%v: exit %d", args, code)
	}
	stderr.Close()
	<-done
	return shown.String()
}

// gone is a standard error without a reader.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestProgressNobodyReads(t *testing.T) {
	t.Parallel() // it sleeps
	src := golden(t, "nemo-basic")
	for _, mode := range []string{"json", "bar", "lines"} {
		app := testApp()
		slowly(app, progress.Every)
		var out bytes.Buffer
		dst := filepath.Join(t.TempDir(), "dst")
		code := app.Run(context.Background(), []string{"convert", src, "blackwidow:" + dst, "--progress", mode}, &out, gone{})
		if code != cli.ExitOK {
			t.Errorf("--progress %s: exit %d", mode, code)
		}
		ok(t, "verify", dst)
	}
}

// TestBrokenPipe checks that a command exits silently when the reader of standard output closes it.
func TestBrokenPipe(t *testing.T) {
	src := golden(t, "nemo-basic")
	var stderr bytes.Buffer
	if code := testApp().Run(context.Background(), []string{"dump", src}, gone{}, &stderr); code != cli.ExitPipe ||
		stderr.Len() > 0 {
		t.Errorf("exit %d, %q", code, stderr.String())
	}
	dst := filepath.Join(t.TempDir(), "dst")
	code := testApp().Run(context.Background(), []string{"convert", src, "blackwidow:" + dst}, gone{}, &stderr)
	if code != cli.ExitFailed || !strings.Contains(stderr.String(), "is complete") {
		t.Errorf("convert: exit %d, %q", code, stderr.String())
	}
}

// TestProgressLines checks the output of a view without a terminal.
func TestProgressLines(t *testing.T) {
	var out lockedBuffer
	v := &cli.ProgressView{W: &out, Mode: "lines", Done: make(chan struct{}), Printed: time.Now()}
	s := progress.State{Phase: "convert", Step: 2, Steps: 4, Done: 1 << 20, Total: 4 << 20, Rate: 1 << 19, Percent: 12.4,
		Elapsed: 61, Remaining: 125.4, Errors: 3}
	v.Tell(s)
	if out.String() != "" {
		t.Errorf("a line at once: %q", out.String())
	}
	after := func(d time.Duration) {
		v.Printed = time.Now().Add(-d)
		v.Tell(s)
		v.Tell(s)
	}
	after(cli.FirstLine)
	after(cli.FirstLine) // the next is due after a minute
	s.Doing, s.Percent, s.Total = "waits", -1, 0
	after(cli.LineEvery)
	v.End(nil)
	want := "TIME kvferry: 12%, 1m1s, about 2 min left; convert (2 of 4): 1.0 MiB of 4.0 MiB, 512.0 KiB/s, 3 errors\n" +
		"TIME kvferry: 1m1s, about 2 min left; convert (2 of 4) waits: 1.0 MiB, 512.0 KiB/s, 3 errors\n" +
		"TIME kvferry: done after 1m1s\n"
	if got := untimed(out.String()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// untimed replaces the time at the start of lines.
func untimed(lines string) string {
	return regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `).ReplaceAllString(lines, "TIME ")
}

// TestProgressCopying checks that copying a server is a step of its own.
func TestProgressCopying(t *testing.T) {
	v := &cli.ProgressView{W: io.Discard, Mode: "bar", Done: make(chan struct{})}
	set := func(f format.Format) *Dataset { return &Dataset{Opened: &Opened{Found: &catalog.Found{Format: f}}} }
	dir, file, server := set(formatOf(t, "nemo")), set(redis.New()), set(live.New())
	preparing(v, readSteps, dir, dir)
	if v.Meter != nil {
		t.Error("directories are copied")
	}
	preparing(v, readSteps, dir, server)
	if dir.prepares != nil || server.prepares == nil {
		t.Fatal("not the server is copied")
	}
	server.prepares()(1<<20, 0, 3, 5)
	s := v.Meter.State()
	if s.Phase != "copy B" || s.Step != 1 || s.Steps != 2 || s.Records != 3 || s.RecordsTotal != 5 {
		t.Errorf("%+v", s)
	}
	s.Elapsed, s.Rate, s.Percent = 2, 1<<19, 0
	if text, want := cli.StateText(s), "0%, 2s; copy B (1 of 2): 1.0 MiB, 512.0 KiB/s, 3 of 5 keys"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
	v.Tell(s)
	s.Total = 4 << 20 // the size is known by now
	v.Tell(s)
	s.Done, s.Total = 2<<20, 3<<20
	v.Tell(s)
	if v.Mode != "bar" {
		t.Error("the bar ended")
	}
	v.End(nil)
	v = &cli.ProgressView{W: io.Discard, Mode: "none", Done: make(chan struct{})}
	preparing(v, readSteps, file)
	if file.prepares == nil || v.Meter.State().Phase != "scan" {
		t.Error("scanning a file is no step")
	}
	v.End(nil)
}

// TestProgressNarrow checks that a terminal too narrow for a bar shows a line that never wraps and is removed before
// other output.
func TestProgressNarrow(t *testing.T) {
	screen, stderr, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	if err := pty.Setsize(stderr, &pty.Winsize{Rows: 5, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	v := &cli.ProgressView{W: stderr, Mode: "bar", Done: make(chan struct{})}
	v.Tell(progress.State{Phase: "convert", Step: 2, Steps: 4, Percent: 25, Elapsed: 61, Remaining: 125, Errors: 3})
	v.Tell(progress.State{Phase: "copy", Step: 1, Steps: 4, Percent: -1, Elapsed: 2, Remaining: -1, Records: 1, RecordsTotal: 2})
	v.End(nil)
	if err := stderr.Close(); err != nil {
		t.Fatal(err)
	}
	shown, _ := io.ReadAll(screen) // ends with an error when the other side is closed
	first, second := "25% convert 1m1s, about 2 min left, 3 err", "copy 2s, 1 of 2 keys"
	first = first[:39]
	want := "\r" + first + "\r" + second + strings.Repeat(" ", 39-len(second)) + "\r" + strings.Repeat(" ", len(second)) + "\r"
	if string(shown) != want {
		t.Errorf("%q, want %q", shown, want)
	}
}

// TestProgressReplay checks that every command that reads an append-only file shows the replay as a step.
func TestProgressReplay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "aof")
	ok(t, "convert", buildSmall(t, formatOf(t, "rdb"), floydSet()...), "aof:"+dir)
	for _, args := range [][]string{{"dump", dir}, {"verify", dir}, {"inspect", dir}, {"fingerprint", dir}, {"diff", dir, dir},
		{"diff", "--direct", dir, dir}, {"verify", dir, "--against", dir}} {
		r := kvferry(t, append(args, "--progress", "json")...)
		want := []string{`"phase":"replay"`}
		if len(args) > 2 {
			want = []string{`"phase":"replay A"`, `"phase":"replay B"`}
		}
		for _, text := range want {
			if r.code != cli.ExitOK || !strings.Contains(r.stderr, text) {
				t.Errorf("%s: exit %d, %s is not in\n%s", args, r.code, text, r.stderr)
			}
		}
	}
}

// TestProgressBarDrawn draws a step whose size becomes known after its start, and prints the state in place of the
// bar.
func TestProgressBarDrawn(t *testing.T) {
	var out lockedBuffer
	v := &cli.ProgressView{W: &out, Mode: "bar", Done: make(chan struct{})}
	v.Line(v.Last)
	if got := untimed(out.String()); got != "TIME kvferry: starting\n" {
		t.Errorf("before the first step: %q", got)
	}
	s := progress.State{Phase: "read", Step: 1, Steps: 1, Percent: -1, Remaining: -1}
	v.Tell(s)
	s.Done, s.Rate = 1<<20, 1<<19
	v.Tell(s)
	if n := strings.Count(out.String(), "\r"); n != 2 { // a draw is one write
		t.Errorf("%d carriage returns in %q", n, out.String())
	}
	if got := out.String(); strings.Contains(got, "%") || !strings.Contains(got, "read, 512.0 KiB/s, 0s") {
		t.Errorf("a step without a size: %q", got)
	}
	s.Percent, s.Total = 25, 2<<20 // half of this step: the bar shows all of the command
	v.Tell(s)
	if got := out.String(); !strings.Contains(got, " 25% ") {
		t.Errorf("the bar does not know the size: %q", got)
	}
	v.Line(s)
	if got := out.String(); !regexp.MustCompile(`\r[-0-9]{10}T[:0-9]{8}Z kvferry: 25%.* 512\.0 KiB/s\n$`).MatchString(got) {
		t.Errorf("the bar is not cleared for a line: %q", got[max(0, len(got)-80):])
	}
	v.End(nil)
}

// TestProgressSignal requests the state of a running command by signal.
func TestProgressSignal(t *testing.T) {
	var out lockedBuffer
	app := testApp()
	root := app.Root()
	root.SetErr(&out)
	v := cli.NewProgress(root, &cli.ProgressFlags{Mode: "none"}, app.Terminal)
	v.Tell(progress.State{Phase: "prove", Step: 3, Steps: 4, Remaining: -1})
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for i := 0; !strings.Contains(out.String(), "prove (3 of 4)"); i++ {
		if i > 100 {
			t.Fatalf("no answer: %q", out.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	v.End(nil)
}

// TestProgressResult checks the last line of JSON progress.
func TestProgressResult(t *testing.T) {
	for want, err := range map[string]error{"done": nil, "cancelled": context.Canceled, "failed": errors.New("x")} {
		var out lockedBuffer
		v := &cli.ProgressView{W: &out, Mode: "json", Done: make(chan struct{}), Printed: time.Now()}
		v.Tell(progress.State{Phase: "run"})
		v.End(err)
		v.End(errors.New("said twice"))
		var line struct {
			progress.State
			Result string `json:"result"`
		}
		lines := strings.SplitAfter(out.String(), "\n") // the first line reports the start of the step
		e := json.Unmarshal([]byte(strings.Join(lines[1:], "")), &line)
		if e != nil || line.Result != want || line.Time.IsZero() {
			t.Errorf("%v: %q: %v", err, out.String(), e)
		}
	}
}

// TestProgressOfDumps dumps rows, deleted records and live ones: each must count all bytes read.
func TestProgressOfDumps(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, flag := range []string{"--raw", "--format=hex", "--dead", "--keys-only"} {
		r := kvferry(t, "dump", "--progress", "json", flag, "-o", out, golden(t, "nemo-basic"))
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		var last progress.State
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || r.code != cli.ExitOK {
			t.Fatalf("%s: exit %d, %q: %v", flag, r.code, r.stderr, err)
		}
		if last.Total == 0 || last.Done != last.Total || last.Tasks == 0 || last.TasksDone != last.Tasks {
			t.Errorf("%s: %s", flag, lines[len(lines)-1])
		}
		if err := os.Remove(out); err != nil {
			t.Error(err)
		}
	}
}

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestTitleOfReport checks that the screen shows a report's title, however long the report is.
func TestTitleOfReport(t *testing.T) {
	text := "title\n  into\n" + strings.Repeat("line\n", 20)
	for _, c := range []struct {
		name, text    string
		columns, rows int
		want          string
	}{
		{"no terminal", text + text, 0, 0, text + text},
		{"it fits", text, 80, 24, text},
		{"too long", text + "line\n", 80, 23, text + "line\n" + "title\n  into\n"},
		{"a wide line", text + strings.Repeat("x", 100) + "\n", 80, 24, text + strings.Repeat("x", 100) + "\ntitle\n  into\n"},
	} {
		got := new(page.Text)
		got.WriteString(c.text)
		report.WithTitle(got, c.columns, c.rows)
		if got.String() != c.want {
			t.Errorf("%s: got\n%s", c.name, got)
		}
	}
}
