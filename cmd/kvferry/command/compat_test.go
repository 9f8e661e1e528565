package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/record"
)

// TestCompatibilityPage: the committed page is what the code says. make docs writes it anew.
func TestCompatibilityPage(t *testing.T) {
	want := ok(t, "formats", "--markdown")
	got, err := os.ReadFile("../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/compatibility.md is not what the code says: run make docs")
	}
	for _, text := range []string{
		"| blackwidow | `key-too-long`, `empty-key`, `score-range`, `too-many-elements` | nothing | nothing | `same-name`, `inner-nul` | `same-name`, `int-span` |",
		"| nemo | nothing | nothing | nothing | `same-name`, `inner-nul` | `same-name`, `int-span` |",
		"| ardb | `stream`, `key-too-long`,",
		"| nemo | read and written | – | – |",
	} {
		if !strings.Contains(want, text) {
			t.Errorf("no %q on the page", text)
		}
	}
}

// TestLossesAreDescribed: every constant of a kind of loss is on the page.
func TestLossesAreDescribed(t *testing.T) {
	page, kinds := ok(t, "formats", "--markdown"), 0
	constant := regexp.MustCompile(`(?m)^\s+Loss\w+\s+= "([a-z0-9-]+)"`)
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "losses.go" {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range constant.FindAllSubmatch(data, -1) {
			kinds++
			if !strings.Contains(page, "\n| `"+string(m[1])+"` | ") {
				t.Errorf("%s: %s is not described", path, m[1])
			}
		}
		return err
	})
	if err != nil || kinds < 12 {
		t.Errorf("%d kinds found, %v", kinds, err)
	}
}

// possible checks that the page lists a loss for a pair of formats.
func possible(t testing.TB, from, to place, kind string) {
	t.Helper()
	f, l := from.limits(t), to.limits(t)
	for _, info := range format.PossibleLosses(&f, &l) {
		if info.Kind == kind {
			if info.Note != (kind == record.LossHyperLogLog) {
				t.Errorf("%s: note %v", kind, info.Note)
			}
			return
		}
	}
	t.Errorf("%s from %s to %s is not on the page", kind, from, to)
}
