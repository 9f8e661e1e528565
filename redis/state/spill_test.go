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
