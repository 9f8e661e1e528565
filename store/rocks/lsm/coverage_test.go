package lsm

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestCoverageBefore: before the first tombstone nothing is deleted, not even what has the sequence number 0.
func TestCoverageBefore(t *testing.T) {
	at := func(key string) bound { return bound{key: []byte(key)} }
	c := &coverage{compare: bytes.Compare, frags: []fragment{{at("c"), 7}, {at("e"), 0}}}
	for _, w := range []struct {
		key string
		seq uint64
	}{{"a", 0}, {"b", 0}, {"c", 7}, {"d", 7}, {"e", 0}, {"f", 0}} {
		if got := c.seq([]byte(w.key)); got != w.seq {
			t.Errorf("%s is deleted below %d, want %d", w.key, got, w.seq)
		}
	}
}

// TestFragments compares what overlapping tombstones delete with a look at each of them, for every key and for the places
// beside it; sequence numbers occur more than once, and some tombstones cover nothing.
func TestFragments(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	place := func() bound { return bound{fmt.Appendf(nil, "%02d", rnd.IntN(20)), rnd.IntN(2) == 0} }
	for range 300 {
		var ts []Tombstone
		for range rnd.IntN(25) {
			ts = append(ts, Tombstone{from: place(), to: place(), Seq: uint64(1 + rnd.IntN(12))})
		}
		frags := fragments(bytes.Compare, ts)
		for i, f := range frags {
			if i == 0 && f.seq == 0 || i > 0 && (frags[i-1].seq == f.seq ||
				compareBounds(bytes.Compare, frags[i-1].from, f.from) >= 0) {
				t.Fatalf("fragment %d of %v", i, frags)
			}
		}
		if n := len(frags); n > 0 && frags[n-1].seq != 0 {
			t.Fatalf("the last fragment has no end: %v", frags)
		}
		c := coverage{compare: bytes.Compare, frags: frags}
		for key := range 21 {
			k := fmt.Appendf(nil, "%02d", key)
			want := uint64(0)
			for _, x := range ts {
				if !x.from.before(bytes.Compare, k) && x.to.before(bytes.Compare, k) {
					want = max(want, x.Seq)
				}
			}
			anywhere := coverage{compare: bytes.Compare, frags: frags, next: rnd.IntN(len(frags) + 1)}
			anywhere.seek(k)
			if got, sought := c.seq(k), anywhere.seq(k); got != want || sought != want {
				t.Fatalf("key %s is deleted below %d, after seek %d, want %d: %v", k, got, sought, want, ts)
			}
		}
	}
}

// TestBounds: a place after a key is after the one before it, and before the next key.
func TestBounds(t *testing.T) {
	sorted := []bound{{[]byte("a"), false}, {[]byte("a"), true}, {[]byte("b"), false}, {[]byte("b"), true}}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := compareBounds(bytes.Compare, a, b); got != cmp.Compare(i, j) {
				t.Errorf("%v and %v compare as %d", a, b, got)
			}
			low, high := minBound(bytes.Compare, a, b), maxBound(bytes.Compare, a, b)
			if compareBounds(bytes.Compare, low, sorted[min(i, j)]) != 0 ||
				compareBounds(bytes.Compare, high, sorted[max(i, j)]) != 0 {
				t.Errorf("%v and %v: from %v to %v", a, b, low, high)
			}
		}
	}
}
