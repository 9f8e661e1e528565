package rocks

import (
	"cmp"
	"slices"
)

// seqSet holds the sequence numbers in a log. Each entry of a batch takes one, and engines write them without a gap.
type seqSet struct {
	First, Last uint64 // of all batches; 0: no batch
	// Gap is the first place in the log with missing numbers, and Missing the total of missing numbers. Back is the
	// first place where the numbers go back.
	Gap, Back seqJump
	Missing   uint64

	ranges []seqRange // ascending
}

// seqJump is a place where a batch does not continue the sequence.
type seqJump struct {
	Off         int64  // of the batch in its log
	Prev, First uint64 // the last number before, and the first number of the batch; 0: no jump
}

// maxRanges bounds the ranges of a log: gaps beyond it are ignored.
const maxRanges = 4096

// Add notes the sequence numbers of a batch at an offset of the log; batches ascend.
func (s *seqSet) Add(r seqRange, off int64) {
	switch jump := (seqJump{off, s.Last, r.first}); {
	case len(s.ranges) == 0:
		s.First = r.first
	case r.first > s.Last+1:
		s.Missing += r.first - s.Last - 1
		if s.Gap.First == 0 {
			s.Gap = jump
		}
	case r.first <= s.Last && s.Back.First == 0:
		s.Back = jump
	}
	s.Last = max(s.Last, r.last)
	l := s.ranges
	if n := len(l); n > 0 && (r.first <= l[n-1].last+1 || n == maxRanges) {
		l[n-1].last = max(l[n-1].last, r.last)
		return
	}
	s.ranges = append(l, r)
}

// Any reports whether a number was noted.
func (s *seqSet) Any() bool { return len(s.ranges) > 0 }

// Has reports whether a sequence number was noted.
func (s *seqSet) Has(seq uint64) bool {
	i, ok := slices.BinarySearchFunc(s.ranges, seq, func(r seqRange, n uint64) int { return cmp.Compare(r.first, n) })
	return ok || i > 0 && seq <= s.ranges[i-1].last
}

// union merges the numbers of several logs.
func union(logs []*seqSet) *seqSet {
	var all []seqRange
	for _, s := range logs {
		all = append(all, s.ranges...)
	}
	return &seqSet{ranges: joined(all)}
}
