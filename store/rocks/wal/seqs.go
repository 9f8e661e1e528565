package wal

import (
	"cmp"
	"slices"
)

// Range is a stretch of sequence numbers, both ends included.
type Range struct{ first, last uint64 }

// Ranges are stretches of sequence numbers, ascending.
type Ranges []Range

// maxRanges bounds how many stretches of sequence numbers a log has: further gaps between them are not known.
const maxRanges = 4096

// Add notes the sequence numbers of a batch that was read; batches ascend.
func (s *Ranges) Add(r Range) {
	l := *s
	if n := len(l); n > 0 && (r.first <= l[n-1].last+1 || n == maxRanges) {
		l[n-1].last = max(l[n-1].last, r.last)
		return
	}
	*s = append(l, r)
}

// Has reports whether a sequence number was noted.
func (s Ranges) Has(seq uint64) bool {
	i, ok := slices.BinarySearchFunc(s, seq, func(r Range, n uint64) int { return cmp.Compare(r.first, n) })
	return ok || i > 0 && seq <= s[i-1].last
}
