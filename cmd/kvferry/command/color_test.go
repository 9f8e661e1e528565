package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inColors runs a command line of an app whose streams are terminals or not.
func inColors(t *testing.T, terminal bool, args ...string) (out, said string) {
	t.Helper()
	app := testApp()
	app.Terminal, app.Screen, app.Colors = terminal, terminal, true
	var stdout, stderr bytes.Buffer
	app.Run(context.Background(), args, &stdout, &stderr)
	return stdout.String(), stderr.String()
}

// TestColors checks which words of reports have a colour, and that files, pipes and data have none.
func TestColors(t *testing.T) {
	src := golden(t, "nemo-basic")
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.CopyFS(damaged, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(damaged, "hash", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	if err := os.Remove(tables[0]); err != nil {
		t.Fatal(err)
	}
	fp := filepath.Join(t.TempDir(), "fp")
	ok(t, "fingerprint", src, "-o", fp)
	const red, green, bold, end = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"
	for _, c := range []struct {
		want []string
		args []string
	}{
		{[]string{": " + green + "sound" + end}, []string{"verify", src}},
		{[]string{red + "error" + end + " missing-file", red + "lost:" + end, bold + "next:" + end}, []string{"verify", damaged}},
		{[]string{green + "equal" + end + ": "}, []string{"diff", src, src}},
		{[]string{": " + green + "equal" + end + " to "}, []string{"fingerprint", "--check", fp, src}},
		{[]string{green + "proved" + end + ": ", green + "the ledger adds up" + end}, []string{"convert", src, "blackwidow:" + filepath.Join(t.TempDir(), "a")}},
		{[]string{red + "kvferry:" + end + " refused", "(" + red + "not allowed" + end + ")"}, []string{"convert", damaged, "blackwidow:" + filepath.Join(t.TempDir(), "b")}},
		{[]string{red + "kvferry:" + end}, []string{"verify", "/none"}},
	} {
		out, said := inColors(t, true, c.args...)
		for _, want := range c.want {
			if !strings.Contains(out+said, want) {
				t.Errorf("%s: no %q in\n%q", c.args, want, out+said)
			}
		}
		if out, said := inColors(t, false, c.args...); strings.Contains(out+said, "\x1b") {
			t.Errorf("%s: colours in a pipe: %q", c.args, out+said)
		}
	}
	file := filepath.Join(t.TempDir(), "findings")
	inColors(t, true, "verify", damaged, "--color", "always", "-o", file)
	if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte("\x1b")) || !bytes.Contains(text, []byte("lost: ")) {
		t.Errorf("%v: a file with colours: %q", err, text)
	}
	for _, args := range [][]string{{"dump", src}, {"verify", "--format", "json", damaged}, {"keys", src}} {
		if out, _ := inColors(t, true, append(args, "--color", "always")...); strings.Contains(out, "\x1b") {
			t.Errorf("%s: data with colours: %q", args, out)
		}
	}
}
