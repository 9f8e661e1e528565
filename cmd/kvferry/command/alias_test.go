package command

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestFormatEverywhere requests JSON from every command that prints results.
func TestFormatEverywhere(t *testing.T) {
	src := golden(t, "nemo-basic")
	for _, args := range [][]string{
		{"convert", src, "blackwidow:" + filepath.Join(t.TempDir(), "dst")},
		{"convert", "-n", src, "blackwidow:" + filepath.Join(t.TempDir(), "dst")},
		{"verify", src}, {"inspect", src}, {"fingerprint", src}, {"diff", src, src}, {"explain", src, "s1:stale0"},
		{"dump", src}, {"formats"}, {"version"},
	} {
		var v any
		if err := json.Unmarshal([]byte(ok(t, append(args, "--format", "json")...)), &v); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestOldNames runs flags under their old names.
func TestOldNames(t *testing.T) {
	src := golden(t, "nemo-basic")
	for _, c := range [][2][]string{
		{{"verify", src, "--report", "junit", "--type", "set"}, {"verify", src, "--format", "junit", "--type", "set"}},
		{{"inspect", src, "--json"}, {"inspect", src, "--format", "json"}},
		{{"explain", "--json", src, "k"}, {"explain", "--format", "json", src, "k"}},
		{{"formats", "--markdown"}, {"formats", "--format", "markdown"}},
		{{"inspect", src, "--json=false"}, {"inspect", src}},
	} {
		old, now := kvferry(t, c[0]...), kvferry(t, c[1]...)
		if old.code != now.code || old.code == ExitUsage || withoutTimes(old.stdout) != withoutTimes(now.stdout) {
			t.Errorf("%q: exit %d, %s", c[0], old.code, old.stderr)
		}
	}
	if help := ok(t, "verify", "--help"); strings.Contains(help, "--report ") {
		t.Error("the old name stands in the help")
	}
	if r := kvferry(t, "inspect", src, "--json=x"); r.code != ExitUsage {
		t.Errorf("--json=x: exit %d", r.code)
	}
}

// withoutTimes drops lines with durations.
func withoutTimes(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, "time=") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func TestFingerprintText(t *testing.T) {
	out := ok(t, "fingerprint", golden(t, "nemo-basic"), "--format", "text")
	if !strings.Contains(out, "database") || strings.Count(out, "\n") != 6 || !strings.Contains(out, "12,725") {
		t.Error(out)
	}
}
