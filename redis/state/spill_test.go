package state

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kvferry/internal/testkit/seed"
	"kvferry/record"
)

// cramped returns a state whose cache holds less than a megabyte.
func cramped(t *testing.T) *State {
	t.Helper()
	s, err := New(Options{TempDir: t.TempDir(), Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// blocksRead returns the number of blocks that the store has read, whether they were cached or not.
func (s *State) blocksRead() int64 {
	c := s.db.Metrics().BlockCache
	return c.Hits + c.Misses
}

// TestWork bounds what the store reads for values that do not fit into the cache: a command must not pass what others removed.
func TestWork(t *testing.T) {
	const n = 4000
	name := func(i int) []byte { return fmt.Append(nil, "element:", i) }
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 100+max(0, i%10-8)*20_000) } // large beside small
	update := func(s *State, key string, kind record.Type, do func(v *Value)) {
		v := s.Find([]byte(key))
		if v == nil {
			v = s.Make(kind)
		}
		do(v)
		s.Store([]byte(key), v)
	}
	for _, c := range []struct {
		name string
		read int64 // blocks for each step
		fill func(s *State, i int)
		step func(s *State, i int)
	}{
		{"fields set and removed", 5, func(s *State, i int) {
			update(s, "h", record.Hash, func(v *Value) { v.SetField(name(i), Field{Value: value(i)}) })
		}, func(s *State, i int) {
			update(s, "h", record.Hash, func(v *Value) { v.SetField(name(i), Field{Value: name(i)}) })
			update(s, "h", record.Hash, func(v *Value) { v.Remove(name(i)) })
			s.SetString(name(i%100), value(1), 0)
		}},
		{"a stream is trimmed", 5, func(s *State, i int) {
			update(s, "x", record.Stream, func(v *Value) { v.AddEntry(StreamID{uint64(i), 0}, value(i)) })
		}, func(s *State, i int) {
			update(s, "x", record.Stream, func(v *Value) {
				v.AddEntry(StreamID{uint64(n + i), 0}, value(i))
				v.Entries(false, func(id StreamID) bool { v.RemoveEntry(id); return false })
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := cramped(t)
			for i := range n {
				c.fill(s, i)
			}
			before := s.blocksRead()
			for i := range n {
				c.step(s, i)
			}
			s.settle()
			if err := s.Err(); err != nil {
				t.Fatal(err)
			}
			if blocks := (s.blocksRead() - before) / n; blocks > c.read {
				t.Errorf("a step reads %d blocks, at most %d wanted", blocks, c.read)
			}
		})
	}
}

// TestEnds adds and removes members of a sorted set at random, mostly at its ends, and compares the ends with those of a
// sorted list.
func TestEnds(t *testing.T) {
	s := cramped(t)
	s.ends.limit = 200_000 // it is exceeded now and then
	r := rand.New(rand.NewPCG(uint64(seed.Of(t)), 1))
	var want []Scored
	in := func(a, b Scored) int { return cmp.Or(cmp.Compare(a.Score, b.Score), bytes.Compare(a.Member, b.Member)) }
	v := s.Make(record.ZSet)
	put := func() {
		z := Scored{float64(r.IntN(2000)), fmt.Append(nil, r.IntN(5000))}
		want = slices.DeleteFunc(want, func(w Scored) bool { return bytes.Equal(w.Member, z.Member) })
		at, _ := slices.BinarySearchFunc(want, z, in)
		want = slices.Insert(want, at, z)
		v.SetScore(z.Member, z.Score)
	}
	for range 3000 {
		put()
	}
	for step := range 3000 {
		if step%700 == 0 {
			s.settle()
			s.recent.clear()
		}
		back, take, seen := r.IntN(2) == 0, 1+r.IntN(4), r.IntN(40)
		if r.IntN(50) == 0 {
			seen = r.IntN(3000)
		}
		if step/500%2 == 0 {
			put()
			put()
			take = r.IntN(2)
		}
		left := slices.Clone(want)
		if back {
			slices.Reverse(left)
		}
		i := 0
		v.Ranked(back, func(z Scored) bool {
			if i >= len(left) || z.Score != left[i].Score || !bytes.Equal(z.Member, left[i].Member) {
				t.Fatalf("step %d: member %d of %d is %q, backwards %t", step, i, len(left), z.Member, back)
			}
			if i < take {
				v.Remove(z.Member)
			}
			i++
			return i < max(take, seen)
		})
		if n := min(max(take, seen, 1), len(left)); i != n {
			t.Fatalf("step %d: %d members, want %d", step, i, n)
		}
		left = left[min(take, len(left)):]
		if back {
			slices.Reverse(left)
		}
		want = left
	}
	if v.Len() != int64(len(want)) {
		t.Errorf("%d members, want %d", v.Len(), len(want))
	}
}

// TestAppend appends to strings that are in memory, in the store or nowhere, among other commands, and compares them with
// a map, at any time and once sealed.
func TestAppend(t *testing.T) {
	s := cramped(t)
	s.recent.limit = recentBlock / 4
	r := rand.New(rand.NewPCG(uint64(seed.Of(t)), 1))
	want := map[string]string{}
	tails := 0
	same := func(key string, v *Value) {
		if w, ok := want[key]; ok != (v != nil) || v != nil && (v.Type != record.String || string(v.Content()) != w) {
			t.Fatalf("%q: %d bytes, want %d: %t", key, v.Len(), len(w), ok)
		}
	}
	for i := range 20_000 {
		key := fmt.Sprintf("key%d", r.IntN(2000))
		part := bytes.Repeat([]byte{byte(i)}, r.IntN(100)+r.IntN(200)/199*9000)
		switch op := r.IntN(40); {
		case op < 2:
			s.SetString([]byte(key), part, int64(i%2))
			want[key] = string(part)
		case op < 3:
			s.Remove([]byte(key))
			delete(want, key)
		case op < 4:
			v := s.Make(record.Set)
			v.AddMember(part)
			s.Store([]byte(key), v)
			if s.Append([]byte(key), part) {
				t.Fatal("a string was appended to a set")
			}
			s.Remove([]byte(key))
			delete(want, key)
		case op < 5:
			same(key, s.Find([]byte(key)))
		default:
			if !s.Append([]byte(key), part) {
				v := s.Find([]byte(key))
				if same(key, v); v == nil {
					v = s.Make(record.String)
				}
				v.SetBytes(v.Len(), part)
				s.Store([]byte(key), v)
			} else if s.recent.find(s.metaKey(0, []byte(key))).flags()&rowTail != 0 {
				tails++
			}
			want[key] += string(part)
		}
	}
	if tails < 300 {
		t.Errorf("only %d strings were not read", tails)
	}
	check := func() {
		n := 0
		s.scan(s.metaKey(0, nil), func(key, row []byte) bool {
			same(string(key), s.decodeValue(row))
			n++
			return true
		})
		if n != len(want) {
			t.Fatalf("%d keys, want %d", n, len(want))
		}
	}
	check()
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	check()
}

// TestWalk walks rows in both directions while others are changed, removed and added, which moves them to the store or
// elsewhere in the cache: each row that stays is seen once, in order.
func TestWalk(t *testing.T) {
	s := cramped(t)
	s.recent.limit = recentBlock / 8
	r := rand.New(rand.NewPCG(uint64(seed.Of(t)), 1))
	v := s.Make(record.Set)
	name := func(i int) []byte { return fmt.Append(nil, 10_000+i) }
	in := map[string]bool{}
	put := func() {
		n := name(r.IntN(3000))
		s.set(dataKey(v.id, n), bytes.Repeat([]byte("v"), r.IntN(100)))
		in[string(n)] = true
	}
	for range 2500 {
		put()
	}
	for i := range 60 {
		var seen []string
		back, nested := i%2 == 0, 0
		s.walk(dataKey(v.id), nil, back, func(key, _ []byte) bool {
			seen = append(seen, string(key))
			switch n := r.IntN(60); {
			case n < 20:
				s.set(dataKey(v.id, key), bytes.Repeat([]byte("w"), r.IntN(200)))
			case n < 30:
				s.SetString(name(r.IntN(3000)), make([]byte, r.IntN(300)), 0)
			case n == 30:
				s.del(dataKey(v.id, key))
				delete(in, string(key))
			case n == 31 && nested < 5:
				nested++
				s.scan(dataKey(v.id), func(_, _ []byte) bool { return r.IntN(100) > 0 })
			}
			return true
		})
		sorted := slices.Clone(seen)
		slices.Sort(sorted)
		if back {
			slices.Reverse(sorted)
		}
		if !slices.Equal(seen, sorted) || len(slices.Compact(sorted)) != len(seen) {
			t.Fatalf("walk %d is not in order", i)
		}
		for key := range in {
			if _, there := slices.BinarySearchFunc(seen, key, func(a, b string) int { return order(a, b, back) }); !there {
				t.Fatalf("walk %d, backwards %t, passed %q", i, back, key)
			}
		}
		for range 40 {
			put()
		}
	}
}
