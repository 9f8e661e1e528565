package dataset

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/memstore"
	"kvferry/store"
)

// TestSlice: whichever way rows are asked for, those of other databases are not shown.
func TestSlice(t *testing.T) {
	mem := memstore.New().Dir("d")
	for _, key := range []string{"a1", "b1", "b2", "b33", "c1", "c2"} {
		mem.Put("default", []byte(key), nil)
	}
	part := func(prefix, upper string) *Slice {
		s := &Slice{Keyspace: mem.Keyspaces()[0], Holds: func(raw []byte) bool { return bytes.HasPrefix(raw, []byte(prefix)) }}
		s.Lo = []byte(prefix)
		if upper != "" {
			s.Hi = []byte(upper)
		}
		return s
	}
	for _, c := range []struct{ prefix, upper, lo, hi, want string }{
		{"b", "c", "", "", "b1 b2 b33"}, {"b", "c", "a", "z", "b1 b2 b33"}, {"b", "c", "b2", "b3", "b2"}, {"b", "c", "b2", "", "b2 b33"},
		{"c", "", "", "", "c1 c2"}, {"c", "", "c2", "", "c2"}, {"c", "", "", "c2", "c1"}, {"d", "", "", "", ""},
	} {
		var lo, hi []byte
		if c.lo != "" {
			lo = []byte(c.lo)
		}
		if c.hi != "" {
			hi = []byte(c.hi)
		}
		it, err := part(c.prefix, c.upper).Rows(lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := part(c.prefix, c.upper).Entries(lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		var rows, kept []string
		for key, _, err := it.Next(); err == nil; key, _, err = it.Next() {
			rows = append(rows, string(key))
		}
		for e, err := entries.Next(); err == nil; e, err = entries.Next() {
			kept = append(kept, string(e.Key))
		}
		if got := strings.Join(rows, " "); got != c.want || !slices.Equal(rows, kept) {
			t.Errorf("%+v: rows %q, entries %q", c, rows, kept)
		}
	}
	n := 0
	if err := part("b", "c").Unordered(func(*store.Entry) error { n++; return nil }); err != nil || n != 3 {
		t.Errorf("%d entries in no order: %v", n, err)
	}
	if samples, err := part("b", "c").Sample(10); err != nil || len(samples) != 3 || string(samples[2].Key) != "b33" {
		t.Errorf("samples %v, %v", samples, err)
	}
	whole := mem.Keyspaces()[0].Size()
	if b, c, d := part("b", "c").Size(), part("c", "").Size(), part("d", "").Size(); b != whole*7/13 || c != whole*4/13 || d != 0 {
		t.Errorf("%d, %d and %d bytes of %d", b, c, d, whole)
	}
}
