package work

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestIsPath checks that standard input and addresses are not paths, unless such a file exists.
func TestIsPath(t *testing.T) {
	t.Chdir(t.TempDir())
	for source, want := range map[string]bool{"-": false, "redis://host": false, "/data": true, "data": true, "dir:/x": true} {
		if isPath(source) != want {
			t.Errorf("%s is a path: %v", source, !want)
		}
	}
}

// TestSourceDepth checks that files up to six directories deep belong to a source, and deeper ones do not.
func TestSourceDepth(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "1", "2", "3", "4", "5", "6", "7")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	var want []string
	for at, n := deep, 7; ; at, n = filepath.Dir(at), n-1 {
		if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if n <= 6 {
			want = append(want, path.Join(strings.Split("1/2/3/4/5/6", "/")[:n]...)+"/file")
		}
		if n == 0 {
			break
		}
	}
	want[len(want)-1] = "file"
	files, err := List(dir)
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
	}
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestSame checks that the error names the change. Times are equal in any time zone.
func TestSame(t *testing.T) {
	at := time.Unix(1700000000, 0)
	a, b := File{Path: "a", Size: 1, MTime: at.UTC()}, File{Path: "b", Size: 2, MTime: at.UTC(), Real: "/b"}
	change := func(f File, do func(*File)) File { do(&f); return f }
	for _, c := range []struct {
		is   []File
		want string
	}{
		{[]File{b, change(a, func(f *File) { f.MTime = at.In(time.FixedZone("x", 3600)) })}, "<nil>"},
		{[]File{a}, "b is gone"},
		{[]File{a, change(b, func(f *File) { f.Real = "" })}, "b is at (none) now, was at /b"},
		{[]File{change(a, func(f *File) { f.Real = "/a" }), b}, "a is at /a now, was at (none)"},
		{[]File{change(a, func(f *File) { f.Size = 7 }), b}, "a has 7 bytes, had 1"},
		{[]File{change(a, func(f *File) { f.MTime = at.UTC().Add(time.Second) }), b}, "a was modified at 2023-11-14T22:13:21Z"},
		{[]File{a, b, {Path: "c"}}, "c is new"},
	} {
		if got := fmt.Sprint(same([]File{a, b}, c.is)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.is, got, c.want)
		}
	}
	if got := fmt.Sprint(same([]File{{Path: "."}}, nil)); got != "the file is gone" {
		t.Error(got)
	}
}

// TestSource checks that a source is located where its links lead, and that an address has no files.
func TestSource(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src, link, far := filepath.Join(dir, "src"), filepath.Join(dir, "link"), filepath.Join(dir, "far")
	if err := errors.Join(os.Mkdir(src, 0o755), os.WriteFile(far, []byte("12"), 0o644), os.Symlink(src, link),
		os.Symlink(far, filepath.Join(src, "row"))); err != nil {
		t.Fatal(err)
	}
	path, files, err := Source(link, "")
	if err != nil || path != src || len(files) != 1 || files[0].Path != "row" || files[0].Size != 2 || files[0].Real != far {
		t.Errorf("%s, %+v, %v", path, files, err)
	}
	if path, files, err := Source("redis://host", ""); err != nil || path != "redis://host" || files != nil {
		t.Errorf("%s, %+v, %v", path, files, err)
	}
	if path, files, err := Source(link, src); err != nil || path != src || len(files) != 2 || files[1].Path != "wal-dir:row" ||
		files[1].Size != 2 {
		t.Errorf("with logs elsewhere: %s, %+v, %v", path, files, err)
	}
	if _, _, err := Source(link, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := Source(filepath.Join(dir, "none"), ""); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestUntouched: other programs can set times back, but not that of the last change of attributes.
func TestUntouched(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("SKIPPED: needs the time of the last change of attributes")
	}
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := func() []File {
		files, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	was := list()
	if err := untouched(was, list()); err != nil {
		t.Error(err)
	}
	if err := untouched(was, list()[1:]); err != nil { // what is missing is not its business
		t.Error(err)
	}
	err := error(nil)
	for n := 0; err == nil && n < 1e6; n++ { // until the clock of the file system has ticked
		if e := os.Chmod(filepath.Join(dir, "b"), fs.FileMode(0o600|n%2)); e != nil {
			t.Fatal(e)
		}
		err = untouched(was, list())
	}
	if err == nil || !strings.HasPrefix(err.Error(), "b was written to") {
		t.Errorf("a file whose attributes changed: %v", err)
	}
}
