// Package docs holds the pages of this directory, so that a lone binary can show them.
package docs

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed *.md formats/*.md
var pages embed.FS

// Topics lists the pages by name: findings, formats/nemo.
func Topics() []string {
	var out []string
	// The files are in the binary: walking them cannot fail.
	_ = fs.WalkDir(pages, ".", func(file string, d fs.DirEntry, _ error) error {
		if !d.IsDir() {
			out = append(out, strings.TrimSuffix(file, ".md"))
		}
		return nil
	})
	slices.Sort(out)
	return out
}

// Page returns the text of a page; a format's also by the format's name alone.
func Page(topic string) (string, bool) {
	for _, file := range []string{topic + ".md", path.Join("formats", topic+".md")} {
		if text, err := pages.ReadFile(file); err == nil {
			return string(text), true
		}
	}
	return "", false
}
