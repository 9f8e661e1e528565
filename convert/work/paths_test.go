package work

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckedPlaces lists the reasons to refuse targets, temporary directories and output files before any data is
// read.
func TestCheckedPlaces(t *testing.T) {
	dir := t.TempDir()
	source, file, link := filepath.Join(dir, "source"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(source, 0o755), os.WriteFile(file, nil, 0o644),
		os.WriteFile(filepath.Join(source, "row"), nil, 0o644),
		os.Symlink(filepath.Join(source, "row"), link),
		os.Symlink(filepath.Join(dir, "no"), filepath.Join(dir, "dangling"))); err != nil {
		t.Fatal(err)
	}
	nearest := func(target string) error {
		got, err := Nearest(filepath.Join(dir, target))
		if err == nil && got != dir {
			t.Errorf("%s: the nearest directory is %s", target, got)
		}
		return err
	}
	for _, c := range []struct {
		what string
		err  error
		want string // "" is no error
	}{
		{"a new target", CheckNew(filepath.Join(dir, "new")), ""},
		{"a new target in a file", CheckNew(filepath.Join(file, "new")), ""}, // refused by CheckParent
		{"a target that exists", CheckNew(link), link + ": already exists; kvferry does not overwrite it"},
		{"a target in a directory", CheckParent(filepath.Join(dir, "new")), ""},
		{"a target in no directory", CheckParent(filepath.Join(dir, "none", "new")), "does not exist; make it first"},
		{"a target in a file", CheckParent(filepath.Join(file, "new")), "is not a directory"},
		{"the directory of a target", nearest("new"), ""},
		{"one above it", nearest("none/deep/new"), ""},
		{"a file above it", nearest("file/new"), "is not a directory"},
		{"a dangling link above it", nearest("dangling/new"), "dangling"},
		{"no directory for temporary files", CheckTemp(source, ""), ""},
		{"a directory for temporary files", CheckTemp(source, dir), ""},
		{"one that is none", CheckTemp(source, filepath.Join(dir, "none")), "the directory for temporary files does not exist"},
		{"a file for temporary files", CheckTemp(source, file), "the directory for temporary files is not a directory"},
		{"temporary files in the source", CheckTemp(source, source), "source"},
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

// TestApart checks that a source includes the targets of its links, and a path is resolved, too. A location that is
// not a path is apart from everything.
func TestApart(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	if err := errors.Join(os.MkdirAll(at("source/deep"), 0o755), os.MkdirAll(at("store/sub"), 0o755),
		os.Mkdir(at("source2"), 0o755),
		os.Symlink(at("store"), at("source/deep/link")), os.Symlink(at("store/sub"), at("sub"))); err != nil {
		t.Fatal(err)
	}
	for parent, apart := range map[string]bool{"": true, "source2": true, "source": false, "source/deep": false, "store": false,
		"store/sub": false, "sub": false,
		"source/deep/link/sub": false} {
		err := CheckApart(at("source"), at(parent), "out")
		if (err == nil) != apart || err != nil && err.Error() != "out: is inside the source "+at("source")+", which kvferry must not change" {
			t.Errorf("in %q: %v", parent, err)
		}
	}
	if err := CheckApart("redis://host", at("source"), "out"); err != nil {
		t.Error(err)
	}
	for _, none := range [][2]string{{at("none"), dir}, {at("source"), at("none")}} {
		if err := CheckApart(none[0], none[1], "out"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: %v", none, err)
		}
	}
	if err := CheckNew(at("source")); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v is not that it exists", err)
	}
}
