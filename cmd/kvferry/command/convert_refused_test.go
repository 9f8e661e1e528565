package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect/verify"
	"kvferry/internal/pass/progress"
	"kvferry/record"
)

// lastLines returns the last lines of a text.
func lastLines(s string, n int) []string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}

// TestRefusalAvoids: a loss that a flag or another name of the target avoids is answered with complete command lines that
// work: the first keeps more, the second loses it.
func TestRefusalAvoids(t *testing.T) {
	library := filepath.Join(t.TempDir(), "library.rdb")
	text := "REDIS0010\xf5\x1f#!lua name=l\nredis.call('PING')\xff"
	if err := os.WriteFile(library, []byte(text+strings.Repeat("\x00", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ src, target, lost, better string }{
		{library, "rdb", "module", "convert --rdb-version 10 "},
		{golden(t, "pika35-edge"), "pika3", "stream", " pika3.5:"},
	} {
		dst := filepath.Join(t.TempDir(), "dst")
		r := kvferry(t, "convert", c.src, c.target+":"+dst)
		end := lastLines(r.stderr, 4)
		if r.code != cli.ExitLossy || end[0] != "to keep more:" || !strings.Contains(end[1], c.better) ||
			end[2] != "to lose "+c.lost+" as well:" {
			t.Fatalf("exit %d, %s", r.code, strings.Join(end, "\n"))
		}
		ok(t, strings.Fields(end[1])[1:]...)
		ok(t, strings.Fields(end[3] + "-lossy")[1:]...)
	}
}

// TestNextCommandKeepsAll: the command that verify recommends for a damaged dataset writes the dialect, and the version of RDB
// files, that hold what the source holds.
func TestNextCommandKeepsAll(t *testing.T) {
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.rdb")
	if err := os.WriteFile(cut, []byte("REDIS0011\xfe\x00\x00\x01a\x01b\x00\x09c"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := converted(t, golden(t, "pika35-edge"), "pika3.5")
	tables, err := filepath.Glob(filepath.Join(lost, "db0", "hashes", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	if err := os.Remove(tables[0]); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ src, want string }{{cut, " --rdb-version 11 "}, {lost, " pika3.5:"}} {
		r := kvferry(t, "verify", c.src)
		next := lastLines(r.stdout, 1)[0]
		if r.code != cli.ExitFindings || !strings.HasPrefix(next, "next: kvferry ") || !strings.Contains(next, c.want) {
			t.Fatalf("exit %d, %s", r.code, next)
		}
		ok(t, strings.Fields(next)[2:]...)
	}
}

// TestOutputEndsTheBar: output on the screen of the bar begins at the left of an empty line, and no bar follows it.
func TestOutputEndsTheBar(t *testing.T) {
	var screen strings.Builder
	v := &cli.ProgressView{Mode: "bar", W: &screen}
	v.Tell(progress.State{Phase: "compare", Percent: 75})
	if !strings.Contains(screen.String(), "compare") {
		t.Fatalf("no bar: %q", screen.String())
	}
	if _, err := v.Over(&cli.StandardOutput{Writer: &screen, Screen: true}).Write([]byte("missing\n")); err != nil {
		t.Fatal(err)
	}
	v.Tell(progress.State{Phase: "compare", Percent: 80})
	if !strings.HasSuffix(screen.String(), " \rmissing\n") {
		t.Errorf("%q", screen.String())
	}
}

// TestPipeEndsTheBar: the reader of a pipe may write to the screen of the bar. Once it has output, no bar is drawn.
func TestPipeEndsTheBar(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var screen strings.Builder
	v := &cli.ProgressView{Mode: "bar", W: &screen, Printed: time.Now()}
	v.Tell(progress.State{Phase: "read", Percent: -1})
	if !strings.Contains(screen.String(), "read") {
		t.Fatalf("no bar: %q", screen.String())
	}
	if _, err := v.Over(&cli.StandardOutput{Writer: w}).Write([]byte("user:1\n")); err != nil {
		t.Fatal(err)
	}
	v.Tell(progress.State{Phase: "read", Percent: -1})
	if text := screen.String(); !strings.HasSuffix(text, " \r") || v.Mode != "lines" {
		t.Errorf("%s after %q", v.Mode, text)
	}
}

// TestRestLosses: saving the rest allows what the errors mean, and nothing else.
func TestRestLosses(t *testing.T) {
	newer := verify.KindCount{Kind: record.FindNewer, Severity: record.Error, Count: 1}
	damaged := verify.KindCount{Kind: record.FindDamagedFile, Severity: record.Error, Count: 1}
	note := verify.KindCount{Kind: record.FindNewer, Severity: record.Warning, Count: 1}
	for want, counts := range map[string][]verify.KindCount{
		"damaged": {note, damaged}, "newer": {newer}, "damaged,newer": {newer, note, damaged, damaged},
	} {
		if got := restLosses(counts); got != want {
			t.Errorf("%v: %s, want %s", counts, got, want)
		}
	}
}
