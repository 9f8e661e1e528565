package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestGlob checks that an unreadable directory does not count as empty.
func TestGlob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a*[b]")
	if names, err := Glob(dir, "*"); len(names) > 0 || err != nil {
		t.Errorf("not there: %q, %v", names, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"OPTIONS-2", "OPTIONS-1", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := Glob(dir, "OPTIONS-*")
	want := []string{filepath.Join(dir, "OPTIONS-1"), filepath.Join(dir, "OPTIONS-2")}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v; want %q", names, err, want)
	}
	if _, err := Glob(dir, "["); err == nil {
		t.Error("a pattern that is none: no error")
	}
	defer Inject(func(op, _ string) error {
		if op == "readdir" || op == "readlink" {
			return syscall.EIO
		}
		return nil
	})()
	if _, err := Glob(dir, "*"); !errors.Is(err, syscall.EIO) {
		t.Errorf("unreadable: %v", err)
	}
	if _, err := EvalSymlinks(dir); !errors.Is(err, syscall.EIO) {
		t.Errorf("EvalSymlinks: %v", err)
	}
	if _, err := Readlink(dir); !errors.Is(err, syscall.EIO) {
		t.Errorf("Readlink: %v", err)
	}
	if err := WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error { return err }); !errors.Is(err, syscall.EIO) {
		t.Errorf("WalkDir: %v", err)
	}
}

// TestWalkDir checks that WalkDir visits the same entries as filepath.WalkDir.
func TestWalkDir(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700),
		os.WriteFile(filepath.Join(dir, "a", "f"), nil, 0o600), os.Symlink("a", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	gather := func(to *[]string) fs.WalkDirFunc {
		return func(path string, d fs.DirEntry, err error) error {
			*to = append(*to, path+" "+d.Type().String())
			return err
		}
	}
	if err := errors.Join(WalkDir(dir, gather(&got)), filepath.WalkDir(dir, gather(&want))); err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
