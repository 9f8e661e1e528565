package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckedPlaces: what output files are refused for before anything is read.
func TestCheckedPlaces(t *testing.T) {
	dir := t.TempDir()
	source, file, link := filepath.Join(dir, "source"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(source, 0o755), os.WriteFile(file, nil, 0o644), os.WriteFile(filepath.Join(source, "row"), nil, 0o644),
		os.Symlink(filepath.Join(source, "row"), link)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		err  error
		want string // "" is no error
	}{
		{"no output file", CheckOutput(source, ""), ""},
		{"an output file", CheckOutput(source, filepath.Join(dir, "out")), ""},
		{"one that exists", CheckOutput(source, file), ""},
		{"a device", CheckOutput(source, os.DevNull), ""},
		{"a directory", CheckOutput(source, dir), "is a directory"},
		{"one in no directory", CheckOutput(source, filepath.Join(dir, "none", "out")), "none does not exist; make it first"},
		{"a new one in the source", CheckOutput(source, filepath.Join(source, "out")), "source"},
		{"one that is of the source", CheckOutput(source, filepath.Join(source, "row")), "source"},
		{"one that is of the source by a link", CheckOutput(source, link), "source"},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, c.err, c.want)
		}
	}
}
