package record

import (
	"math"
	"testing"
)

// TestRankScore checks that ranks have the order of scores, and that -0.0 ranks as 0.0.
func TestRankScore(t *testing.T) {
	scores := []float64{math.Inf(-1), -math.MaxFloat64, -1.5, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1,
		1.5, math.MaxFloat64, math.Inf(1)}
	for i, f := range scores[1:] {
		if RankScore(scores[i]) >= RankScore(f) {
			t.Errorf("%v does not rank before %v", scores[i], f)
		}
	}
	if RankScore(math.Copysign(0, -1)) != RankScore(0) {
		t.Error("-0.0 has a rank of its own")
	}
	if nan := math.Float64frombits(0x7ff0000000000001); RankScore(nan) != 0xfff0000000000001 {
		t.Errorf("a signalling NaN loses its bits: %x", RankScore(nan))
	}
}
