package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestInside: a file of a dataset is a regular file in its own directory, or what a link there leads to if that is in the
// dataset, too.
func TestInside(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "set")
	for _, dir := range []string{"set/db0/info", "elsewhere/db1", "set2"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"set/info", "set/db0/file", "elsewhere/db1/info", "secret", "set2/info"} {
		if err := os.WriteFile(filepath.Join(top, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"set/db1": "../elsewhere/db1", "set/in": "db0/file", "set/db1/own": "info",
		"set/db0/up": "../info",
		"set/out":    "../secret", "set/abs": filepath.Join(top, "secret"), "set/near": "../set2/info", "set/none": "gone", "set/dir": "db0",
		"set/self": "self", "set/twice": "out", "set/db1/root": filepath.Join(root, "info")} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Skip(err)
		}
	}
	for rel, want := range map[string]string{
		"info": "set/info", "db1/info": "set/db1/info", "in": "set/db0/file", "db0/up": "set/info", "db1/own": "elsewhere/db1/info", "db1/root": "set/info",
		"out": "", "abs": "", "near": "", "none": "", "dir": "", "self": "", "twice": "", "db0/info": "", "db0": "",
	} {
		got, err := Inside(root, rel)
		if want == "" && !errors.Is(err, ErrNotRegular) || want != "" && (err != nil || got != filepath.Join(top, want)) {
			t.Errorf("%s: %q, %v, want %q", rel, got, err, want)
		}
	}
	if _, err := Inside(root, "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}
