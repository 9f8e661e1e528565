package versioned

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestScoreRanks(t *testing.T) {
	back := func(score float64) float64 {
		rank, mark := RankFloat(score)
		return math.Float64frombits(binary.LittleEndian.Uint64(AppendRankLE(nil, rank, mark)))
	}
	rankOf := func(score float64) uint64 {
		rank, _ := RankFloat(score)
		return rank
	}
	scores := []float64{math.Inf(-1), -math.MaxFloat64, -1e13, -1, -5e-324, 0, 5e-324, 1, 1<<53 + 2, math.MaxFloat64, math.Inf(1)}
	for i, s := range scores {
		if i > 0 && rankOf(scores[i-1]) >= rankOf(s) {
			t.Errorf("%v does not rank before %v", scores[i-1], s)
		}
		if got := back(s); got != s {
			t.Errorf("score %v comes back as %v", s, got)
		}
	}
	negative := math.Copysign(0, -1)
	if rankOf(negative) != rankOf(0) || !math.Signbit(back(negative)) {
		t.Error("-0.0 does not rank as 0.0 or does not come back")
	}
}
