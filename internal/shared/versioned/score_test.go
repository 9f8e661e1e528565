package versioned

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
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

// TestCompareScored sorts shuffled index keys: shorter than a score, scores with members, and NaNs by their bits.
func TestCompareScored(t *testing.T) {
	key := func(score float64, member string) []byte { return append(AppendScoreLE(nil, score), member...) }
	want := [][]byte{{}, {1, 2}, {1, 3}, key(math.Inf(-1), ""), key(-2, "z"), key(math.Copysign(0, -1), "a"), key(0, "b"),
		key(0, "c"), key(7, ""),
		key(math.Inf(1), ""), key(math.NaN(), ""), key(math.NaN(), "a"), key(math.Float64frombits(math.Float64bits(math.NaN())+1), "")}
	for range 100 {
		got := slices.Clone(want)
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, CompareScored)
		// -0.0 and 0.0 are equal, so their members decide.
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("sorted to %x", got)
		}
	}
}

func TestFieldSums(t *testing.T) {
	var s FieldSums
	for _, ms := range []int64{0, 50, 20, 0, 90, 0} {
		s.Add(ms)
	}
	if want := (FieldSums{Persist: 3, Expiring: 3, Lower: 20, Upper: 90}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}
