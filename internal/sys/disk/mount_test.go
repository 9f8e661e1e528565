package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// remoteFS is a mounted file system over files in memory. The version of a file is its content.
type remoteFS struct{ fstest.MapFS }

type remoteFile struct {
	*strings.Reader
	info *Info
}

func (f remoteFile) Close() error         { return nil }
func (f remoteFile) Ahead(int64, int64)   {}
func (f remoteFile) Keep(string)          {}
func (f remoteFile) Sparse() io.ReaderAt  { return f }
func (f remoteFile) Stat() (*Info, error) { return f.info, nil }

func (m *remoteFS) Open(name string) (Handle, error) {
	st, err := m.Stat(name)
	if err != nil {
		return nil, err
	}
	return remoteFile{strings.NewReader(st.Version), st}, nil
}

func (m *remoteFS) Stat(name string) (*Info, error) {
	st, err := m.MapFS.Stat(name)
	if err != nil {
		return nil, err
	}
	i := &Info{Base: st.Name(), Bytes: st.Size(), Time: st.ModTime(), Dir: st.IsDir(), Of: "s3://b/" + name}
	if !i.Dir {
		i.Version = string(m.MapFS[name].Data)
	}
	return i, nil
}

func (m *remoteFS) ReadDir(name string) (out []*Info, err error) {
	entries, err := m.MapFS.ReadDir(name)
	for _, e := range entries {
		i, _ := m.Stat(filepath.ToSlash(filepath.Join(name, e.Name())))
		out = append(out, i)
	}
	return out, err
}

func (m *remoteFS) Now() (func(string) (*Info, error), error) { return m.Stat, nil }

// TestMount reads a mounted file system through the functions of the package, at each spelling of its address.
func TestMount(t *testing.T) {
	one := &remoteFS{fstest.MapFS{"d/a": {Data: []byte("first")}, "d/b": {Data: []byte("second")}}}
	unmount := Mount("s3://b/x", "s3://b/x/d", one)
	for _, root := range []string{"s3://b/x/d", "s3:/b/x/d/", filepath.Join("s3://b/x", "d")} {
		entries, err := ReadDir(root)
		if err != nil || len(entries) != 2 || entries[1].Name() != "b" || !entries[1].Type().IsRegular() {
			t.Fatalf("%s: %v, %v", root, entries, err)
		}
		if b, err := ReadFile(filepath.Join(root, "b")); err != nil || string(b) != "second" {
			t.Errorf("%s: %q, %v", root, b, err)
		}
		if paths, err := Glob(root, "*"); err != nil || !slices.Equal(paths, []string{"s3://b/x/d/a", "s3://b/x/d/b"}) {
			t.Errorf("%s has %q, %v", root, paths, err)
		}
	}
	got := []string{Join("s3://b/x", "d", "..", "e"), Dir("s3://b/x/d"), Join("s3://other", "d")}
	if !slices.Equal(got, []string{"s3://b/x/e", "s3://b/x", filepath.Join("s3://other", "d")}) {
		t.Errorf("%q", got)
	}
	if abs, err := Abs("s3:/b/x/d"); err != nil || abs != "s3://b/x/d" {
		t.Errorf("%s, %v", abs, err)
	}
	var walked []string
	err := WalkDir("s3://b/x", func(p string, _ fs.DirEntry, err error) error { walked = append(walked, p); return err })
	if err != nil || !slices.Equal(walked, []string{"s3://b/x", "s3://b/x/d", "s3://b/x/d/a", "s3://b/x/d/b"}) {
		t.Errorf("%q, %v", walked, err)
	}
	for name, err := range map[string]error{"write": WriteFile("s3://b/x/new", nil), "beside": second(Stat("s3://b/xx")),
		"missing": second(Stat("s3://b/x/none"))} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Readlink("s3://b/x/d/a"); err == nil {
		t.Error("a link")
	}
	beside := Mount("s3://b/x/", "s3://b/x/e", &remoteFS{fstest.MapFS{"d/a": {Data: []byte("hides")}, "e/a": {Data: []byte("third")}}})
	below := Mount("s3://b/x/d", "s3://b/x/d/in", &remoteFS{fstest.MapFS{"a": {Data: []byte("hides")}, "in/a": {Data: []byte("fourth")}}})
	for p, want := range map[string]string{"s3://b/x/d/a": "first", "s3://b/x/d/b": "second", "s3://b/x/e/a": "third",
		"s3://b/x/d/in/a": "fourth"} {
		if b, err := ReadFile(p); err != nil || string(b) != want {
			t.Errorf("%s of several: %q, %v", p, b, err)
		}
	}
	beside()
	below()
	unmount()
	if IsMounted("s3://b/x/d/a") {
		t.Error("still mounted")
	}
}

func second[T any](_ T, err error) error { return err }

// TestVersions compares files of mounted file systems and of the disk.
func TestVersions(t *testing.T) {
	local := t.TempDir()
	st, err := os.Stat(local)
	if err != nil {
		t.Fatal(err)
	}
	a := &Info{Of: "s3://b/a", Version: "1", Bytes: 3, Time: time.Unix(1, 0)}
	later := &Info{Of: "s3://b/a", Version: "1", Bytes: 3, Time: time.Unix(2, 0)}
	changed := &Info{Of: "s3://b/a", Version: "2", Bytes: 3, Time: time.Unix(1, 0)}
	for _, c := range []struct {
		x, y   fs.FileInfo
		same   bool
		differ string
	}{
		{a, a, true, ""},
		{a, later, true, ""},
		{a, changed, false, "it was replaced (its version was 1, is 2)"},
		{a, &Info{Of: "s3://b/b", Version: "1", Bytes: 3}, false, ""},
		{a, &Info{Of: "s3://b/a", Version: "1", Bytes: 4}, true, "from 3 to 4 bytes"},
		{a, st, false, "size"},
		{st, st, true, ""},
	} {
		if got := SameFile(c.x, c.y); got != c.same {
			t.Errorf("%+v and %+v are the same: %v", c.x, c.y, got)
		}
		if got := difference(c.x, c.y); c.differ == "" && got != "" || !strings.Contains(got, c.differ) {
			t.Errorf("%+v and %+v: %q, want %q", c.x, c.y, got, c.differ)
		}
	}
	if Version(a) != "1" || Version(st) != "" {
		t.Errorf("versions %q, %q", Version(a), Version(st))
	}
	s := new(Sources)
	m := &remoteFS{fstest.MapFS{"a": {Data: []byte("old")}}}
	defer Mount("s3://b", "s3://b/a", m)()
	f, err := s.Open("s3://b/a")
	if err != nil || s.Check() != nil {
		t.Fatal(err, s.Check())
	}
	defer f.Close()
	m.MapFS["a"] = &fstest.MapFile{Data: []byte("new")}
	var change *ChangedError
	if err := s.Check(); !errors.As(err, &change) || change.Path != "s3://b/a" {
		t.Errorf("%v", err)
	}
}
