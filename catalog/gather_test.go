package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/store"
)

// TestGathered: stores are found maxDepth levels below a directory, and not in a store, or in the work directory of a
// conversion unless it is named itself.
func TestGathered(t *testing.T) {
	dir := t.TempDir()
	work := convert.WorkPath(filepath.Join(dir, "dst"))
	work = work[len(dir)+1:]
	for _, name := range []string{"a/CURRENT", "a/b/CURRENT", "1/2/3/4/CURRENT", "1/2/3/x/5/CURRENT", work + "/data/CURRENT", "z/no"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, work, "journal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &Catalog{Drivers: []Driver{{Name: "fake", Peek: func(dir string) (ev format.StoreEvidence, err error) {
		if _, err = os.Stat(filepath.Join(dir, "CURRENT")); err != nil {
			err = store.ErrNotStore
		}
		return ev, err
	}}}}
	for at, want := range map[string][]string{".": {"1/2/3/4", "a"}, "1": {"2/3/4", "2/3/x/5"}, work: {"data"}, "a": {"."},
		"z": nil} {
		ev, err := c.gather(filepath.Join(dir, at))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range ev.Stores {
			got = append(got, s.Path)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}

// TestCutHeader: three bytes of the header of an RDB file, or more, are one that is cut off.
func TestCutHeader(t *testing.T) {
	for head, want := range map[string]bool{"": false, "R": false, "RE": false, "VA": false, "RED": true, "VAL": true,
		"REDIS": true, "REDIS001": true, "VALKEY08": true, "REDIS0011": false, "RADIS": false, "redis": false, "VALUE": false} {
		if got := cutHeader(head); got != want {
			t.Errorf("%q: %t", head, got)
		}
	}
}

// TestFileIn: the advice to name a file is given only if one file of a directory is a dataset.
func TestFileIn(t *testing.T) {
	dir, c := t.TempDir(), Default()
	rdb := []byte("REDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, add := range []struct {
		name, data string
		one        string // the file that is named then
	}{{"readme", "text", ""}, {"a.rdb", string(rdb), "a.rdb"}, {"empty", "", "a.rdb"}, {"b.rdb", string(rdb), ""},
		{"c.rdb", string(rdb), ""}} {
		if err := os.WriteFile(filepath.Join(dir, add.name), []byte(add.data), 0o600); err != nil {
			t.Fatal(err)
		}
		want := ""
		if add.one != "" {
			want = "rdb:" + filepath.Join(dir, add.one)
		}
		if got := c.fileIn(dir); got != want {
			t.Errorf("with %s: %q, want %q", add.name, got, want)
		}
	}
}
