package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"kvferry/docs"
)

func TestHelpTopics(t *testing.T) {
	for topic, want := range map[string]string{"exit-codes": "wrong usage", "findings": "# ", "nemo": "# The nemo format",
		"formats/ardb": "# ", "verify": "kvferry help findings says more",
		"diff": "\n# Differences and patches\n", "fingerprint": "\n# The fingerprint\n", "formats": "\n# Formats\n"} {
		if got := ok(t, "help", topic); !strings.Contains(got, want) {
			t.Errorf("%s: %.200s", topic, got)
		}
	}
	if r := kvferry(t, "help", "findngs"); r.code != ExitUsage || !strings.Contains(r.stderr, `did you mean "findings"`) {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	for _, topic := range docs.Topics() { // including pages named like a command
		if page, _ := docs.Page(topic); !strings.HasSuffix(ok(t, "help", topic), page) {
			t.Errorf("help %s does not show the page", topic)
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
	if r := kvferry(t, "verify", "-f", job); r.code != ExitUsage || !strings.Contains(r.stderr, "target") {
		t.Errorf("verify takes a target: exit %d, %s", r.code, r.stderr)
	}
	write("source: " + src + "\n")
	ok(t, "verify", "-f", job)
	if r := kvferry(t, "convert", "-f", job); r.code != ExitUsage || !strings.Contains(r.stderr, "1 argument, want 2") {
		t.Errorf("no target: exit %d, %s", r.code, r.stderr)
	}
	write("source: [a, b]\n")
	if r := kvferry(t, "verify", "-f", job); r.code != ExitUsage || !strings.Contains(r.stderr, "want a location") {
		t.Errorf("two sources: exit %d, %s", r.code, r.stderr)
	}
}

// TestHelpWidth checks that no line of a help text exceeds a wide page.
func TestHelpWidth(t *testing.T) {
	for _, c := range testApp().Root().Commands() {
		for line := range strings.Lines(ok(t, c.Name(), "--help")) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 115 {
				t.Errorf("%s: %d characters: %s", c.Name(), n, line)
			}
		}
	}
}
