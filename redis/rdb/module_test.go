package rdb

import (
	"bytes"
	"io"
	"testing"

	"kvferry/record"
)

// packedName packs a name like servers do: 9 characters of 6 bits and 10 bits of a version.
func packedName(name string, version uint64) (id uint64) {
	for _, c := range []byte(name) {
		id = id<<6 | uint64(bytes.IndexByte([]byte(moduleChars), c))
	}
	return id<<10 | version
}

// TestIsModule: a module value begins with the id of its type, and consists of module items.
func TestIsModule(t *testing.T) {
	for _, name := range []string{"ReJSON-RL", "ABCdef09_", "MBbloom--"} {
		id := packedName(name, 3)
		if got := ModuleName(id); got != name {
			t.Errorf("%s is named %s", name, got)
		}
		value := AppendLen(nil, id)
		value = append(AppendLen(AppendLen(value, moduleSInt), 7), AppendLen(nil, moduleString)...)
		value = append(AppendLen(value, 2), "ab"...)
		value = AppendLen(append(AppendLen(value, moduleDouble), 0, 0, 0, 0, 0, 0, 0, 0), moduleEOF)
		is := func(name string, value []byte) bool {
			return IsModule(&record.Element{Name: []byte(name), Value: value})
		}
		if !is(name, value) || is(name, value[:len(value)-1]) || is(name, append(bytes.Clone(value), 0)) ||
			is("another-1", value) || is(name[:8], value) {
			t.Errorf("%s: is a module %v", name, is(name, value))
		}
	}
	for line, want := range map[string]string{"#!lua name=lib1\nx": "lib1", "#!lua  flags=x name=a": "a", "#!lua": `"#!lua"`} {
		if got := LibraryName([]byte(line)); got != want {
			t.Errorf("%q is named %s", line, got)
		}
	}
}

// TestSections: a section yields the items between its offsets, starting in its database, and then ends.
func TestSections(t *testing.T) {
	items := [][]byte{[]byte("\x00\x01a\x01x"), []byte("\x00\x01b\x01y")}
	file := bytes.Join(append([][]byte{[]byte("REDIS0011")}, items...), nil)
	at := int64(len("REDIS0011"))
	for n := range 3 {
		s := Section(bytes.NewReader(file), Header{Version: 11}, 5, at, at+int64(5*n))
		for i := range n {
			it, err := s.Next()
			if err != nil || it.DB != 5 || it.Off != at+int64(5*i) || string(it.Key) != string(rune('a'+i)) {
				t.Fatalf("item %d of %d: %+v, %v", i, n, it, err)
			}
		}
		if it, err := s.Next(); err != io.EOF {
			t.Errorf("after %d items: %+v, %v", n, it, err)
		}
	}
}

// TestVersionServers: each version names its servers; an unknown version names no server.
func TestVersionServers(t *testing.T) {
	for _, x := range versions {
		if x.v.String() != x.name || x.v.Servers() != x.servers {
			t.Errorf("%s is for %q", x.v, x.v.Servers())
		}
	}
	if s := (Version{Number: 80}).Servers(); s != "" {
		t.Errorf("a version that is not there is for %q", s)
	}
}
