package state

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// TestRows: rows of all sizes, read, changed and removed at random, match a map, whether cached or in the
// store.
func TestRows(t *testing.T) {
	s, err := New(Options{TempDir: t.TempDir(), Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(1, 2))
	want := map[string]string{}
	check := func() {
		t.Helper()
		var keys []string
		s.scan([]byte("d"), func(key, value []byte) bool {
			k := "d" + string(key)
			if keys = append(keys, k); string(value) != want[k] {
				t.Errorf("%q: %d bytes, want %d", k, len(value), len(want[k]))
			}
			return true
		})
		if !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%d rows, want %d", len(keys), len(want))
		}
	}
	sizes := []int{0, 1, 20, 100, 100, 1000, 30_000, recentRow - recentHead - 20, recentRow, pieceBytes + 1}
	spilled, known := 0, 0
	for i := range 6_000 {
		if i%1500 == 0 {
			for range 40 {
				s.newID()
			}
		}
		name := fmt.Sprintf("f%d", r.IntN(8))
		if r.IntN(50) == 0 {
			name += string(bytes.Repeat([]byte("x"), recentRow)) // a key too long for the cache
		}
		key := dataKey(uint64(r.IntN(int(s.nextID))), []byte(name))
		rows := s.recent.rows
		switch op := r.IntN(10); {
		case op < 4:
			size := sizes[r.IntN(len(sizes)-min(1, i%7))]
			value := bytes.Repeat([]byte{byte(i)}, size)
			s.set(key, value)
			want[string(key)] = string(value)
		case op < 5:
			s.del(key)
			delete(want, string(key))
		case op < 7:
			_, there := want[string(key)]
			if s.has(key) != there {
				t.Fatalf("step %d: has says %t", i, !there)
			}
		default:
			v, there := want[string(key)]
			if got, ok := s.get(key); ok != there || string(got) != v {
				t.Fatalf("step %d: %d bytes, %t, want %d, %t", i, len(got), ok, len(v), there)
			}
		}
		if s.recent.rows < rows {
			spilled++
		}
		if s.recent.find(key) != nil {
			known++
		}
		if i%500 == 0 {
			check()
		}
	}
	check()
	if spilled < 5 || known < 2500 {
		t.Errorf("memory was full %d times, and rows were in it %d times", spilled, known)
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	check()
	for k, v := range want {
		if got, ok := s.get([]byte(k)); !ok || string(got) != v {
			t.Fatalf("%q: %d bytes, %t once sealed", k, len(got), ok)
		}
	}
}

// TestRowsOfNewIDs: rows of ids newer than the store's last write are not looked up there, and rows that were
// made and removed since then are not written.
func TestRowsOfNewIDs(t *testing.T) {
	s, err := New(Options{TempDir: t.TempDir(), Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	old, gone := dataKey(s.newID(), []byte("a")), dataKey(s.newID(), []byte("b"))
	if s.mayBeStored(old) || s.mayBeStored([]byte("m0000key")) {
		t.Error("an empty store may have rows")
	}
	s.set(old, []byte("1"))
	s.set(gone, []byte("2"))
	s.del(gone)
	if places := s.recent.changed(); len(places) != 1 || string(s.recent.at(places[0]).key()) != string(old) {
		t.Errorf("%d rows to write, want one", len(places))
	}
	s.set(old, []byte("3"))
	s.settle()
	young := dataKey(s.newID(), []byte("a"))
	if !s.mayBeStored(old) || !s.mayBeStored([]byte("m0000key")) || s.mayBeStored(young) {
		t.Error("the store may have rows of ids until now, and none of later ones")
	}
	s.del(old)
	if places := s.recent.changed(); len(places) != 1 || s.recent.at(places[0]).flags()&rowGone == 0 {
		t.Errorf("%d rows to write, want one that is gone", len(places))
	}
}

// TestRowsMove: a value that outgrows its room moves, a value that fits stays.
func TestRowsMove(t *testing.T) {
	c := newRecent(recentBlock + 8<<10)
	key := []byte("key")
	for _, size := range []int{10, 12, 500, 3, 500, 501, 600} {
		if !c.put(key, bytes.Repeat([]byte("v"), size), rowDirty) {
			t.Fatal("no room")
		}
		if r := c.find(key); len(r.value()) != size || !bytes.Equal(r.key(), key) {
			t.Errorf("%d bytes of %q, want %d", len(r.value()), r.key(), size)
		}
	}
	if c.rows != 1 || len(c.changed()) != 1 || len(c.dirty) != 0 {
		t.Errorf("%d rows, %d to write", c.rows, len(c.dirty))
	}
	n := 0
	for ; c.put(fmt.Append(nil, "more", n), nil, 0); n++ {
	}
	if n < recentBlock/100 || c.rows != n+1 {
		t.Errorf("%d rows fit, %d are there", n, c.rows)
	}
	for i := range n {
		if c.find(fmt.Append(nil, "more", i)) == nil {
			t.Fatalf("row %d is lost", i)
		}
	}
	if c.put(key, make([]byte, 5000), rowDirty) {
		t.Error("there was room")
	}
	if r := c.find(key); len(r.value()) != 600 {
		t.Errorf("what did not fit changed the row: %d bytes", len(r.value()))
	}
	if c.clear(); c.find(key) != nil || c.rows != 0 || !c.put(key, nil, 0) {
		t.Error("not empty")
	}
}

// TestAge: keys in use stay cached while others, which need several times the cache, pass through it.
func TestAge(t *testing.T) {
	s := cramped(t)
	hot := func(i int) []byte { return fmt.Append(nil, "hot", i%200) }
	value := bytes.Repeat([]byte("v"), 1000)
	spills, missed := 0, 0
	for i := range 8000 {
		rows := s.recent.rows
		if s.recent.find(s.metaKey(0, hot(i))) == nil && i >= 200 {
			missed++
		}
		h := s.Find(hot(i))
		if h == nil {
			h = s.Make(record.Hash)
		}
		h.SetField(fmt.Append(nil, i), Field{})
		s.Store(hot(i), h)
		if s.SetString(fmt.Append(nil, "cold", i), value, 0); s.recent.rows < rows {
			spills++
		}
	}
	if spills < 5 || missed > 0 {
		t.Errorf("%d spills, and %d rows in use were not cached", spills, missed)
	}
	if n := len(s.recent.slots)*recentSlot + len(s.recent.blocks)*recentBlock; n > s.recent.limit+recentBlock {
		t.Errorf("the cache has %d bytes, its limit is %d", n, s.recent.limit)
	}
}

// TestSort: rows are sorted by all bytes of their keys, also where one key begins another or ends with zeros.
func TestSort(t *testing.T) {
	c := newRecent(8 << 20)
	r := rand.New(rand.NewPCG(1, 2))
	var want []string
	for range 5000 {
		key := bytes.Repeat([]byte{byte(r.IntN(2))}, 1+r.IntN(20))
		for i := range key {
			if r.IntN(8) == 0 {
				key[i] = byte(r.IntN(3))
			}
		}
		if key = append([]byte("d0000prefix"), key...); c.find(key) == nil {
			c.put(key, nil, rowDirty)
			want = append(want, string(key))
		}
	}
	slices.Sort(want)
	for i, place := range c.changed() {
		if got := string(c.at(place).key()); got != want[i] {
			t.Fatalf("row %d is %q, want %q", i, got, want[i])
		}
	}
}

// TestLooseCounts: additions to a set or hash whose rows are only in the store are counted on demand, and a
// value is gone once all its elements are removed.
func TestLooseCounts(t *testing.T) {
	s := empty(t)
	name := func(i int) []byte { return fmt.Append(nil, "member", i) }
	forgotten := func(v *Value, key string) *Value {
		t.Helper()
		s.Store([]byte(key), v)
		s.settle()
		s.recent.clear()
		return s.Find([]byte(key))
	}
	set, hash := s.Make(record.Set), s.Make(record.Hash)
	for i := range 10 {
		set.AddMember(name(i))
		hash.SetField(name(i), Field{Value: name(i)})
	}
	set, hash = forgotten(set, "set"), forgotten(hash, "hash")
	for i := 5; i < 15; i++ {
		set.AddMember(name(i))
		set.AddMember(name(i))
		hash.SetField(name(i), Field{Value: name(i)})
		hash.SetField(name(i), Field{Value: name(2 * i)})
	}
	if !set.loose || !hash.loose || set.AtMost() != 20 || hash.AtMost() != 20 {
		t.Errorf("set: at most %d, loose %t; hash: at most %d, loose %t", set.AtMost(), set.loose, hash.AtMost(), hash.loose)
	}
	set, hash = forgotten(set, "set"), forgotten(hash, "hash")
	if !set.loose || set.Empty() || set.Copy().Len() != 15 || hash.Len() != 15 || hash.loose {
		t.Errorf("%d members, %d fields, want 15", set.Copy().Len(), hash.Len())
	}
	for i := range 15 {
		if v := s.Find([]byte("set")); v == nil || v.Empty() {
			t.Fatalf("nothing is left after %d of 15", i)
		}
		set.Remove(name(i))
		set = forgotten(set, "set")
	}
	if set != nil {
		t.Errorf("a set without members: at most %d", set.AtMost())
	}
	other := forgotten(hash, "other")
	other.SetField(name(3), Field{Value: []byte("v")})
	if s.Store([]byte("other"), other); !other.loose {
		t.Error("the field was looked for")
	}
	var none *Value
	if !none.Empty() || none.AtMost() != 0 {
		t.Error("nothing has elements")
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	r, err := formattest.Walk(s.Records(0, record.AllTypes, nil, nil, time.Now(), nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		if h, err := r.Next(); err != nil || h.Len != 15 {
			t.Errorf("%+v, %v: want 15 fields", h, err)
		}
	}
}
