package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant makes files, and links where there is an arrow.
func plant(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		name, to, link := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && link {
			err = os.Symlink(to, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func walked(t *testing.T, root string, skip string) string {
	t.Helper()
	var out []string
	err := Walk(root, func(rel string, info fs.FileInfo, linked bool) error {
		mark := ""
		if linked {
			mark = "@"
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			mark += "?"
		}
		out = append(out, rel+mark)
		switch {
		case rel == skip && info.IsDir():
			return fs.SkipDir
		case rel == skip:
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "root/a/one", "root/b -> a", "root/c -> ../out", "out/two", "out/back -> ../root", "out/self -> .",
		"root/up -> ..", "root/gone -> nowhere", "root/file -> a/one", "link -> root")
	want := ". a a/one b@ b/one@ c@ c/two@ file@ gone@?"
	for _, root := range []string{"root", "link"} {
		if got := walked(t, filepath.Join(dir, root), ""); got != want {
			t.Errorf("%s: got %s\nwant %s", root, got, want)
		}
	}
	if got, want := walked(t, filepath.Join(dir, "root"), "b"), ". a a/one b@ c@ c/two@ file@ gone@?"; got != want {
		t.Errorf("without b: got %s\nwant %s", got, want)
	}
	if got, want := walked(t, filepath.Join(dir, "root"), "b/one"), ". a a/one b@ b/one@"; got != want {
		t.Errorf("until b/one: got %s\nwant %s", got, want)
	}
	if got := walked(t, filepath.Join(dir, "root"), "."); got != "." {
		t.Errorf("only the root: %s", got)
	}
}

func TestWalkErrors(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "root/a/one", "out/x/two", "root/z -> ../out/x")
	if err := Walk(filepath.Join(dir, "nowhere"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root that is not there: %v", err)
	}
	stop := fmt.Errorf("stop")
	err := Walk(dir, func(rel string, _ fs.FileInfo, _ bool) error {
		if rel == "root/a/one" {
			return stop
		}
		return nil
	})
	if err != stop {
		t.Errorf("got %v", err)
	}
	if os.Getuid() == 0 {
		return // nothing is unreadable
	}
	for _, sub := range []string{"out/x", "root/a"} {
		path := filepath.Join(dir, sub)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o755) })
		err := Walk(filepath.Join(dir, "root"), func(string, fs.FileInfo, bool) error { return nil })
		if plain := sub == "root/a"; plain != (err != nil) {
			t.Errorf("%s unreadable: %v", sub, err)
		}
	}
}
