package parquet

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// add writes a record with an element for each value.
func add(t *testing.T, w *part, h record.Header, names ...string) {
	t.Helper()
	var elems []record.Element
	for _, name := range names {
		elems = append(elems, record.Element{Name: []byte(name), Value: []byte(name)})
	}
	h.DB = "0"
	if err := errors.Join(w.Begin(&h), w.Elements(elems), w.End()); err != nil {
		t.Fatal(err)
	}
}

// headers reads the headers of all records, each with its elements.
func headers(t *testing.T, dir string, each func(h *record.Header, elems []record.Element)) {
	t.Helper()
	src := formattest.Open(t, New(), dir, &format.OpenOptions{})
	r := formattest.RecordsOf(t, src, "0", record.AllTypes, format.Span{},
		&format.Env{Now: fixtures.Clock, Ledger: new(record.Ledger)})
	defer r.Close()
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		var room [4]record.Element
		var n int
		if err == nil {
			n, err = r.Read(room[:])
		}
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		each(h, room[:n])
	}
}

// TestByName: one record whose elements are in another order than that of their names is enough: those of its file are
// not read as if they were in order, whatever follows it.
func TestByName(t *testing.T) {
	for _, typ := range []record.Type{record.Hash, record.Set, record.ZSet} {
		for unsorted := range 4 { // 3: none
			dir, m := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Now: fixtures.Clock, Memory: 1}, func(w *part) {
				for i := range 3 {
					add(t, w, record.Header{Type: typ, Key: fmt.Appendf(nil, "k%d", i), ByName: i != unsorted}, "b", "a")
				}
			})
			if len(m.files) != 1 || m.files[0].ByName != (unsorted == 3) {
				t.Errorf("%s, record %d: %+v", typ, unsorted, m.files)
			}
			headers(t, dir, func(h *record.Header, _ []record.Element) {
				if h.ByName != (unsorted == 3) {
					t.Errorf("%s, record %d: %s is by name", typ, unsorted, h.Key)
				}
			})
		}
	}
}

// TestSameNames: a record of a native type and a keyless one of its name are two, and so are lists whose keys are equal
// but for their ends.
func TestSameNames(t *testing.T) {
	dir, _ := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Now: fixtures.Clock, Memory: 1}, func(w *part) {
		add(t, w, record.Header{Type: record.Other, Key: []byte("k"), Native: "module"}, "a")
		add(t, w, record.Header{Type: record.Other, Key: []byte("k"), Keyless: record.Library}, "b")
		add(t, w, record.Header{Type: record.List, Key: []byte("l")}, "c")
		add(t, w, record.Header{Type: record.List, Key: []byte("l\x00")}, "d")
	})
	var got []string
	headers(t, dir, func(h *record.Header, elems []record.Element) {
		got = append(got, fmt.Sprintf("%q %s%s %d %s", h.Key, h.Native, h.Keyless, len(elems), elems[0].Value))
	})
	if text := strings.Join(got, ", "); text != `"k" module 1 a, "k" function 1 b, "l"  1 c, "l\x00"  1 d` {
		t.Error(text)
	}
}

// TestExpired: a record expires after its time, not with it.
func TestExpired(t *testing.T) {
	now := fixtures.Clock.UnixMilli()
	dir, _ := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Now: fixtures.Clock, Memory: 1}, func(w *part) {
		for i, ms := range []int64{0, now - 1, now, now + 1} {
			add(t, w, record.Header{Type: record.String, Key: fmt.Appendf(nil, "k%d", i), ExpireMS: ms}, "v")
		}
	})
	headers(t, dir, func(h *record.Header, _ []record.Element) {
		if h.Expired != (string(h.Key) == "k1") {
			t.Errorf("%s, which expires %d ms from now, has expired: %t", h.Key, h.ExpireMS-now, h.Expired)
		}
	})
}
