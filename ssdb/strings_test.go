package ssdb

import (
	"math"
	"testing"
)

// TestExpiryMS: smaller scores are seconds, and one far below zero does not become a time to come.
func TestExpiryMS(t *testing.T) {
	for score, want := range map[int64]int64{0: 1, 1: 1000, secondsBelow - 1: 1000 * (secondsBelow - 1),
		secondsBelow: secondsBelow, math.MaxInt64: math.MaxInt64} {
		if got := expiryMS(score); got != want {
			t.Errorf("%d: %d, want %d", score, got, want)
		}
	}
	for _, score := range []int64{-1, -9223372036854776, -9223372036854775807, math.MinInt64} {
		if got := expiryMS(score); got >= 0 {
			t.Errorf("%d: %d is to come", score, got)
		}
	}
}
