package dataset

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/memstore"
	"kvferry/store"
)

// TestSlice: no method shows rows of other databases.
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
	if b, c, d := part("b", "c").Size(), part("c", "").Size(), part("d", "").Size(); b != whole*7/13 || c != whole*4/13 ||
		d != 0 {
		t.Errorf("%d, %d and %d bytes of %d", b, c, d, whole)
	}
}

// weighed is a keyspace that records the requested number of samples.
type weighed struct {
	store.Keyspace
	asked   int
	samples []store.Weighted
	err     error
}

func (w *weighed) Sample(n int) ([]store.Weighted, error) { w.asked = n; return w.samples, w.err }

func (w *weighed) Size() int64 { return 1000 }

func (w *weighed) IteratorSize() int64 { return 77 }

// TestSliceSamples: databases share the samples of their keyspace, and its bytes.
func TestSliceSamples(t *testing.T) {
	for _, c := range []struct {
		samples string // a byte each, upper case ones weigh
		err     error
		size    int64
	}{{"AABB", nil, 500}, {"A", nil, 1000}, {"B", nil, 0}, {"b", nil, 0}, {"ab", nil, 0}, {"", nil, 0},
		{"ABB", errors.New("x"), 1000}} {
		w := &weighed{err: c.err}
		for _, b := range []byte(c.samples) {
			w.samples = append(w.samples, store.Weighted{Key: []byte{b | 0x20}, Bytes: int64(b>>5&1 ^ 1)})
		}
		s := &Slice{Keyspace: w, Holds: func(raw []byte) bool { return raw[0] == 'a' }}
		if n := s.Size(); n != c.size {
			t.Errorf("%q: %d bytes, want %d", c.samples, n, c.size)
		}
	}
	for of, want := range map[int]int{0: 10, 1: 10, 2: 20, 3: 30} {
		w := &weighed{}
		if _, err := (&Slice{Keyspace: w, Of: of}).Sample(10); err != nil || w.asked != want {
			t.Errorf("%d samples for one of %d databases, %v", w.asked, of, err)
		}
	}
	if n := (&Slice{Keyspace: &weighed{}}).IteratorSize(); n != 77 {
		t.Errorf("an iterator of %d bytes", n)
	}
	if n := (&Slice{Keyspace: Absent("x")}).IteratorSize(); n != 0 {
		t.Errorf("an iterator of %d bytes where nobody knows", n)
	}
}
