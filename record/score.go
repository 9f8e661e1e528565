package record

import "math"

// RankScore maps scores to integers of the same order. 0.0 and -0.0 are equal; all other scores keep their bits.
func RankScore(score float64) uint64 {
	if score == 0 {
		score = 0
	}
	b := math.Float64bits(score)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}
