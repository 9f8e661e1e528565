package catalog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/store"
)

// scored is a format that detects itself with a fixed score.
type scored struct {
	format.Format
	name  string
	score int
}

func (s scored) Name() string { return s.name }
func (s scored) Detect(*format.Evidence) format.Verdict {
	return format.Verdict{Score: s.score, Why: []string{"so"}}
}

// Limits returns those of a format with LMDB stores.
func (s scored) Limits() format.Limits {
	return format.Limits{Stores: []format.StoreSupport{{Store: "lmdb", Read: s.name != "b"}}}
}

func TestDetect(t *testing.T) {
	ev := &format.Evidence{Dir: "/d", Stores: []format.StoreEvidence{{Path: ".", Kind: "rocksdb",
		Keyspaces: []format.KeyspaceEvidence{{Name: "default"}}}, {Path: "a/b", Kind: "lmdb", Err: errors.New("cut off")},
		{Path: "c", Kind: "leveldb"}, {Path: "d", Kind: "leveldb"}, {Path: "e", Kind: "leveldb"}}}
	for _, tc := range []struct {
		scores [3]int
		want   string
	}{
		{[3]int{0, 50, 20}, "b"},
		{[3]int{90, 50, 20}, "a"},
		{[3]int{50, 20, 50}, "/d: could be a or c: name the format, a:/d"},
		{[3]int{0, 0, 0}, "/d: cannot detect the format: found a lmdb database in a/b that cannot be read (cut off), " +
			"a rocksdb database (default), a leveldb database in c, 2 more; to list the problems, run kvferry verify with a format: a:/d or c:/d"},
	} {
		c := &Catalog{Formats: []format.Format{scored{name: "a", score: tc.scores[0]}, scored{name: "b", score: tc.scores[1]},
			scored{name: "c", score: tc.scores[2]}}}
		f, err := c.detect(ev, io.Discard)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = f.Name()
		}
		if got != tc.want {
			t.Errorf("%v: %s, want %s", tc.scores, got, tc.want)
		}
	}
}

// marked returns a driver whose stores contain a file with its name.
func marked(name string) Driver {
	return Driver{Name: name, Peek: func(dir string) (format.StoreEvidence, error) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return format.StoreEvidence{}, store.ErrNotStore
		}
		if name == "bad" {
			return format.StoreEvidence{}, errors.New("cannot be read")
		}
		return format.StoreEvidence{}, nil
	}}
}

func TestGather(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"db0/x/one", "db0/y/two", "db0/x/deeper/one", "1/2/3/4/one", "1/2/3/4/5/one", "z/bad"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := &Catalog{Drivers: []Driver{marked("one"), marked("two"), marked("bad")}}
	ev, err := c.gather(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range ev.Stores {
		text := s.Path + " " + s.Kind
		if s.Err != nil {
			text += " " + s.Err.Error()
		}
		got = append(got, text)
	}
	want := "1/2/3/4 one; db0/x one; db0/y two; z bad cannot be read"
	if strings.Join(got, "; ") != want {
		t.Errorf("got %s", strings.Join(got, "; "))
	}
	loc := Location{Format: "nemo", Path: "p"}
	if _, err := c.storeOf(&loc, ev); err == nil || !strings.Contains(err.Error(), "several kinds (one, two, bad): choose one, such as nemo+one:p") {
		t.Errorf("%v", err)
	}
	if _, err := c.gather(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a directory that is not there")
	}
}

func TestNotADatabase(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := new(Catalog).notADatabase(dir); !strings.HasSuffix(err.Error(), "(found a, b, c, 1 more)") {
		t.Error(err)
	}
}

func TestParseLocation(t *testing.T) {
	for s, want := range map[string]Location{
		"/data/dump":          {Path: "/data/dump"},
		"nemo:/data":          {Format: "nemo", Path: "/data"},
		"ardb+leveldb:x":      {Format: "ardb", Store: "leveldb", Path: "x"},
		"./a:b":               {Path: "./a:b"},
		"/a:b":                {Path: "/a:b"},
		"nemo:a:b":            {Format: "nemo", Path: "a:b"},
		"C:/x":                {Path: "C:/x"},
		"+leveldb:x":          {Path: "+leveldb:x"},
		"pika4+rocksdb:./x y": {Format: "pika4", Store: "rocksdb", Path: "./x y"},
	} {
		got, err := ParseLocation(s)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "nemo:", "nemo+rocksdb:"} {
		if _, err := ParseLocation(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}
