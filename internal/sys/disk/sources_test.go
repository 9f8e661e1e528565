package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestSources checks the result of Check after each kind of change to an open file.
func TestSources(t *testing.T) {
	past := time.Unix(1e9, 0)
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }
	replace := func(text string) func(string) error {
		return func(path string) error {
			return errors.Join(write(path+".new", text), os.Rename(path+".new", path))
		}
	}
	for _, c := range []struct {
		name             string
		do               func(path string) error
		parts, whole     string // expected parts of the errors; "" means no error
		replaced, linked bool
	}{
		{name: "nothing", do: func(string) error { return nil }},
		{name: "longer", do: func(p string) error { return write(p, "longer") }, parts: "from 3 to 6 bytes", whole: "from 3 to 6 bytes"},
		{name: "in place", do: func(p string) error { return write(p, "new") }, parts: "it was written to while", whole: "it was written to while"},
		{name: "replaced", do: replace("new"), parts: "it was written to", replaced: true},
		{name: "removed", do: os.Remove, parts: "it was removed", replaced: true},
		{name: "linked", do: func(p string) error { return os.Link(p, p+".link") }},
	} {
		for _, whole := range []bool{false, true} {
			for _, closed := range []bool{false, true} {
				path := filepath.Join(t.TempDir(), "f")
				if err := errors.Join(write(path, "old"), os.Chtimes(path, past, past)); err != nil {
					t.Fatal(err)
				}
				s, told := new(Sources), 0
				s.OnReplaced(func(string) { told++ })
				open, want := s.Open, c.parts
				if whole {
					open, want = s.OpenWhole, c.whole
				}
				f, err := open(path)
				if err != nil {
					t.Fatal(err)
				}
				if closed && whole { // after the reader is done, later changes do not count
					err = errors.Join(c.do(path), f.Close())
				} else {
					err = c.do(path)
				}
				if err != nil {
					t.Fatal(err)
				}
				err = errors.Join(s.Check(), s.Check())
				if got := errText(err); want == "" && got != "" || !strings.Contains(got, want) {
					t.Errorf("%s, whole %v, closed %v: %q, want %q", c.name, whole, closed, got, want)
				}
				if wantTold := whole && c.replaced; (told == 1) != wantTold {
					t.Errorf("%s, whole %v: told %d times", c.name, whole, told)
				}
				failed := errors.New("damaged")
				if got := s.Err(failed); (want == "") != (got == failed) {
					t.Errorf("%s, whole %v: Err gives %v", c.name, whole, got)
				}
				if !closed || !whole {
					f.Close()
				}
			}
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestSourcesTouched checks that a change is detected even if the modification time was set back, if the system has a
// ctime.
func TestSourcesTouched(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("sizes and times of modification are all there is")
	}
	path, past := filepath.Join(t.TempDir(), "f"), time.Unix(1e9, 0)
	write := func(text string) fs.FileInfo {
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o644), os.Chtimes(path, past, past)); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	before, changed := write("a"), ""
	for n := 0; n < 1e6 && changed == ""; n++ { // file system timestamps may be coarse
		changed = difference(before, write("b"))
	}
	if !strings.Contains(changed, "attributes") {
		t.Errorf("%q", changed)
	}
}

// TestSourcesAgain checks that a file that has changed cannot be opened again, and that nil Sources ignore changes.
func TestSourcesAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := new(Sources)
	f, err := s.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.WriteFile(path, []byte("ab"), 0o644); err != nil {
		t.Fatal(err)
	}
	var changed *ChangedError
	if _, err := s.Open(path); !errors.As(err, &changed) || changed.Path != path {
		t.Error(err)
	}
	var none *Sources
	f, err = none.Open(path)
	if err != nil || none.Check() != nil || none.Add(path, nil) != nil || none.AddWhole(path, nil) != nil {
		t.Error(err)
	}
	f.Close()
	if err := none.Fail(path, "x"); !errors.As(err, &changed) {
		t.Error(err)
	}
	if dir, err := s.Open(t.TempDir()); err != nil || s.Check() == nil {
		t.Error(err)
	} else {
		dir.Close()
	}
}
