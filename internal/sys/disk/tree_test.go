package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant creates files, and links for names with an arrow.
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
	err := WalkTree(root, func(rel string, info fs.FileInfo, linked bool) error {
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
	if err := WalkTree(filepath.Join(dir, "nowhere"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root that is not there: %v", err)
	}
	stop := fmt.Errorf("stop")
	err := WalkTree(dir, func(rel string, _ fs.FileInfo, _ bool) error {
		if rel == "root/a/one" {
			return stop
		}
		return nil
	})
	if err != stop {
		t.Errorf("got %v", err)
	}
}

// TestWalkClosed checks that inaccessible directories below the root are skipped and reported, also if their names
// can be read.
func TestWalkClosed(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "root/a/one", "root/b/two", "root/empty/x", "out/x/three", "root/z -> ../out/x")
	for closed, want := range map[string]string{"root/a": "a", "root/b": "b", "out/x": "", "root/z": ""} {
		for _, op := range []string{"readdir", "stat"} {
			restore := Inject(func(did, at string) error {
				closed := filepath.Join(dir, closed)
				if did == op && (at == closed && op == "readdir" || filepath.Dir(at) == closed) {
					return fs.ErrPermission
				}
				return nil
			})
			var told []string
			err := WalkTreeTelling(filepath.Join(dir, "root"), func(string, fs.FileInfo, bool) error { return nil },
				func(rel string, err error) {
					if !errors.Is(err, fs.ErrPermission) {
						t.Errorf("%s: %v", rel, err)
					}
					told = append(told, rel)
				})
			restore()
			if got := strings.Join(told, " "); err != nil || got != want {
				t.Errorf("%s, %s: told of %q, %v; want %q", closed, op, got, err, want)
			}
		}
	}
	defer Inject(func(op, at string) error {
		if op == "readdir" && strings.HasSuffix(at, "root") {
			return fs.ErrPermission
		}
		return nil
	})()
	if err := WalkTree(filepath.Join(dir, "root"), func(string, fs.FileInfo, bool) error { return nil }); !errors.Is(err,
		fs.ErrPermission) {
		t.Errorf("a root that may not be read: %v", err)
	}
}
