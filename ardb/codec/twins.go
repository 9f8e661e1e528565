package codec

import (
	"math"

	"github.com/zeebo/xxh3"
)

// Twins checks that the sort and score rows of a sorted set have the same members: the sums of their hashes
// agree.
type Twins struct {
	Sorts, Scores int64
	sum           uint64
}

// Sort adds a sort row.
func (t *Twins) Sort(member []byte, score float64) {
	t.Sorts++
	t.sum += twinHash(member, score)
}

// Score adds a score row.
func (t *Twins) Score(member []byte, score float64) {
	t.Scores++
	t.sum -= twinHash(member, score)
}

// Agree reports whether all rows that were added are twins.
func (t *Twins) Agree() bool { return t.sum == 0 && t.Sorts == t.Scores }

func twinHash(member []byte, score float64) uint64 {
	if score == 0 {
		score = 0 // -0.0 and 0.0 are one sort row
	}
	return xxh3.HashSeed(member, math.Float64bits(score))
}
