package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// asserted matches questions for an ability of a source that fail behind a wrapper, and wraps matches wrappers.
var (
	asserted = regexp.MustCompile(`\.\(format\.(Versioned|Undead|Sectioned|Weighed|Filed)\)`)
	wraps    = regexp.MustCompile(`(?s)\ntype (\w+) struct \{[^}]*?\n\tformat\.Source\n`)
)

// TestWrappers: no source loses an ability behind a wrapper. Abilities are asked with format.As, and each source that
// embeds another one has Unwrap.
func TestWrappers(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := asserted.Find(text); found != nil {
			t.Errorf("%s: %s: ask with format.As", path, found)
		}
		for _, m := range wraps.FindAllSubmatch(text, -1) {
			seen++
			if !regexp.MustCompile(`\n(?://.*\n)?func \(\w+ \*?` + string(m[1]) + `\) Unwrap\(\) format\.Source `).Match(text) {
				t.Errorf("%s: %s has no Unwrap: abilities of its source are lost", path, m[1])
			}
		}
		return nil
	})
	if err != nil || seen < 3 {
		t.Errorf("%d wrappers: %v", seen, err)
	}
}
