package lsm

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"

	"kvferry/record"
)

// bound is a position between keys: before key, or after it if after is set.
type bound struct {
	key   []byte
	after bool
}

// compareBounds orders positions.
func compareBounds(compare func(a, b []byte) int, a, b bound) int {
	if c := compare(a.key, b.key); c != 0 {
		return c
	}
	switch {
	case a.after == b.after:
		return 0
	case b.after:
		return -1
	}
	return 1
}

func minBound(compare func(a, b []byte) int, a, b bound) bound {
	if compareBounds(compare, a, b) <= 0 {
		return a
	}
	return b
}

func maxBound(compare func(a, b []byte) int, a, b bound) bound {
	if compareBounds(compare, a, b) >= 0 {
		return a
	}
	return b
}

// before reports whether key comes before the position.
func (b bound) before(compare func(a, b []byte) int, key []byte) bool {
	c := compare(key, b.key)
	return c < 0 || c == 0 && b.after
}

// fragment deletes entries older than seq from its position up to the next fragment; seq 0 deletes none.
type fragment struct {
	from bound
	seq  uint64
}

// fragments splits tombstones, which may overlap, into disjoint fragments: at the last sequence number only the newest
// tombstone over a key counts.
func fragments(compare func(a, b []byte) int, ts []Tombstone) []fragment {
	type event struct {
		at    bound
		start bool
		seq   uint64
	}
	var events []event
	for i := range ts {
		if compareBounds(compare, ts[i].from, ts[i].to) < 0 {
			events = append(events, event{ts[i].from, true, ts[i].Seq}, event{ts[i].to, false, ts[i].Seq})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return compareBounds(compare, a.at, b.at) })
	open := newSeqSet()
	var out []fragment
	for i, e := range events {
		if e.start {
			open.add(e.seq)
		} else {
			open.remove(e.seq)
		}
		if i+1 < len(events) && compareBounds(compare, e.at, events[i+1].at) == 0 {
			continue
		}
		seq := open.max()
		if n := len(out); n == 0 || out[n-1].seq != seq {
			out = append(out, fragment{e.at, seq})
		}
	}
	return out
}

// seqSet is a multiset of sequence numbers with access to the maximum: a heap whose removed members are popped when
// they reach the top.
type seqSet struct {
	heap seqHeap
	live map[uint64]int
}

func newSeqSet() *seqSet { return &seqSet{live: make(map[uint64]int)} }

func (s *seqSet) add(seq uint64) {
	s.live[seq]++
	heap.Push(&s.heap, seq)
}

func (s *seqSet) remove(seq uint64) {
	if s.live[seq]--; s.live[seq] == 0 {
		delete(s.live, seq)
	}
}

// max returns the greatest member, or 0.
func (s *seqSet) max() uint64 {
	for len(s.heap) > 0 && s.live[s.heap[0]] == 0 {
		heap.Pop(&s.heap)
	}
	if len(s.heap) == 0 {
		return 0
	}
	return s.heap[0]
}

// seqHeap implements heap.Interface, with the greatest number at the top.
type seqHeap []uint64

func (h seqHeap) Len() int           { return len(h) }
func (h seqHeap) Less(i, j int) bool { return h[i] > h[j] }
func (h seqHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *seqHeap) Push(x any)        { *h = append(*h, x.(uint64)) }

func (h *seqHeap) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}

// sortTombstones sorts tombstones by start of coverage, newest first.
func sortTombstones(compare func(a, b []byte) int, ts []Tombstone) {
	slices.SortStableFunc(ts, func(a, b Tombstone) int {
		if c := compareBounds(compare, a.from, b.from); c != 0 {
			return c
		}
		return -cmp.Compare(a.Seq, b.Seq)
	})
}

// coverage looks up the deleting sequence number of ascending keys.
type coverage struct {
	compare func(a, b []byte) int
	frags   []fragment
	next    int // the first fragment that starts after the last looked-up key
}

// seq returns the sequence number below which entries of key are deleted, or 0.
func (c *coverage) seq(key []byte) uint64 {
	for c.next < len(c.frags) && !c.frags[c.next].from.before(c.compare, key) {
		c.next++
	}
	if c.next == 0 {
		return 0
	}
	return c.frags[c.next-1].seq
}

// seek repositions at any key.
func (c *coverage) seek(key []byte) {
	c.next = sort.Search(len(c.frags), func(i int) bool { return c.frags[i].from.before(c.compare, key) })
}

// Tombstone is a range delete: keys in [start, end) older than seq do not exist.
type Tombstone struct {
	Start, End []byte
	Seq        uint64
	// from and to are the covered range within the bounds of its table.
	from, to bound
	place    record.Place
}
