package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		if err := write(dir); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"man/kvferry.1": "convert, verify and inspect", "man/kvferry-verify.1": "Exit codes", "man/kvferry-dump.1": "redis-cli",
		"completion/kvferry.bash": "bash completion", "completion/kvferry.zsh": "compdef", "completion/kvferry.fish": "fish completion",
		"completion/kvferry.ps1": "powershell",
		"man/kvferry-convert.1":  "dst.kvferry-report.json", "man/kvferry-inspect.1": `.TH "KVFERRY-INSPECT"`,
	} {
		text, err := os.ReadFile(filepath.Join(a, name))
		if err != nil || !strings.Contains(strings.ToLower(string(text)), strings.ToLower(want)) {
			t.Errorf("%s does not say %q: %v", name, want, err)
		}
		again, err := os.ReadFile(filepath.Join(b, name))
		if err != nil || string(again) != string(text) {
			t.Errorf("%s is another file the second time: %v", name, err)
		}
	}
}

// TestIndentedLinesAreCode: indented lines of a help text are copied line by line, so that a YAML file or a
// command can be copied from a page.
func TestIndentedLinesAreCode(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"kvferry.1":            "\n.EX\nsource: /data/pika/dump\ntarget: blackwidow:/data/new\ntype: [hash, zset]\nworkers: 4\ndry-run: true\n.EE\n",
		"kvferry-dump.1":       "\n.EX\nkvferry dump --dead --format resp --match user:1 /data/dump | redis-cli --pipe\n.EE\n",
		"kvferry-completion.1": "\n.EX\nbash        needs",
	} {
		text, err := os.ReadFile(filepath.Join(dir, "man", name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not have %q: %v", name, want, err)
		}
	}
}
