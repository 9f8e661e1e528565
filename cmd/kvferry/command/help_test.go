//go:build unix

package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"kvferry/cmd/kvferry/cli"
	"kvferry/docs"
	"kvferry/internal/text/page"
)

func TestHelpTopics(t *testing.T) {
	for topic, want := range map[string]string{"exit-codes": "wrong usage", "findings": "Findings\n====", "nemo": "The nemo format (Pika 1.x to 2.3)\n====",
		"formats/ardb": "====", "verify": "See also kvferry help findings",
		"diff": "\nDifferences and patches\n====", "fingerprint": "\nThe fingerprint\n====", "formats": "\nFormats\n===="} {
		if got := ok(t, "help", topic); !strings.Contains(got, want) {
			t.Errorf("%s: %.200s", topic, got)
		}
	}
	if r := kvferry(t, "help", "findngs"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, `did you mean "findings"`) {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	for _, topic := range docs.Topics() { // including pages named like a command
		text, _ := docs.Page(topic)
		shown := page.Render(text, cli.UsualHelp)
		if !strings.HasSuffix(ok(t, "help", topic), shown) {
			t.Errorf("help %s does not show the page", topic)
		}
		for line := range strings.Lines(shown) {
			if n := page.Width(strings.TrimSuffix(line, "\n")); n > cli.UsualHelp {
				t.Errorf("help %s: %d characters: %s", topic, n, line)
			}
		}
	}
	for _, c := range testApp().Root().Commands() {
		if c.Name() != "help" && !strings.Contains(ok(t, "help", c.Name()), "Usage:") {
			t.Errorf("no usage of %s", c.Name())
		}
	}
}

// TestJobArguments reads source and target from a job file.
func TestJobArguments(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), t.TempDir()
	job := filepath.Join(dir, "job.yaml")
	write := func(text string) {
		if err := os.WriteFile(job, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("source: " + src + "\ntarget: blackwidow:" + filepath.Join(dir, "new") + "\ntype: [hash]\n")
	ok(t, "convert", "-f", job)
	ok(t, "convert", "-f", job, src, "blackwidow:"+filepath.Join(dir, "other"))
	ok(t, "diff", filepath.Join(dir, "new"), filepath.Join(dir, "other"))
	if r := kvferry(t, "verify", "-f", job); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "target") {
		t.Errorf("verify takes a target: exit %d, %s", r.code, r.stderr)
	}
	write("source: " + src + "\n")
	ok(t, "verify", "-f", job)
	if r := kvferry(t, "convert", "-f", job); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "1 argument, want 2") {
		t.Errorf("no target: exit %d, %s", r.code, r.stderr)
	}
	write("source: [a, b]\n")
	if r := kvferry(t, "verify", "-f", job); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "want a location") {
		t.Errorf("two sources: exit %d, %s", r.code, r.stderr)
	}
}

// TestHelpFitsTheScreen checks help texts on a screen of 80 by 24 characters: no line is cut, the short help leaves a row
// for the prompt, and the first group of flags is short.
func TestHelpFitsTheScreen(t *testing.T) {
	for _, c := range append(testApp().Root().Commands(), testApp().Root()) {
		args := strings.Fields(strings.TrimPrefix(c.CommandPath(), "kvferry"))
		long, short := ok(t, append(args, "--help")...), ok(t, append(args, "-h")...)
		for line := range strings.Lines(long + short) {
			if n := page.Width(strings.TrimSuffix(line, "\n")); n > cli.UsualHelp {
				t.Errorf("%s: %d characters: %s", args, n, line)
			}
		}
		if n := strings.Count(short, "\n"); n > 23 || !strings.Contains(short, "kvferry help") {
			t.Errorf("kvferry %s -h has %d lines", args, n)
		}
		_, flags, _ := strings.Cut(long, "\nFlags:\n")
		flags, _, _ = strings.Cut(flags, "\n\n")
		if n := strings.Count(flags, "  --") + strings.Count(flags, ", --"); n == 0 || n > 20 {
			t.Errorf("%s: %d flags in the first group", args, n)
		}
	}
}

// TestHelpOnTerminal shows help in a pager where it is longer than the terminal, wrapped to its width.
func TestHelpOnTerminal(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	t.Setenv("KVFERRY_PAGER", "tee "+seen)
	screen, out, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, screen)
	defer screen.Close()
	defer out.Close()
	if err := pty.Setsize(out, &pty.Winsize{Rows: 24, Cols: 64}); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		if code := testApp().Run(t.Context(), args, out, io.Discard); code != cli.ExitOK {
			t.Errorf("%s: exit %d", args, code)
		}
	}
	run("convert", "-h")
	if _, err := os.Stat(seen); err == nil {
		t.Error("a pager for the short help")
	}
	run("help", "findings")
	text, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ = bytes.Cut(text, []byte("step by step")) // commands that follow are not wrapped
	for line := range strings.Lines(string(text)) {
		if page.Width(line) > 65 || len(text) < 500 {
			t.Errorf("%q", line)
		}
	}
	t.Setenv("KVFERRY_PAGER", "/nonexistent")
	run("help", "convert")
}
