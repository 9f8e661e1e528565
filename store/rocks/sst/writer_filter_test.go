package sst

import (
	"math/rand"
	"testing"
)

// TestModulo compares with the remainder itself, over all magnitudes of both numbers.
func TestModulo(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 200_000 {
		n, h := rnd.Intn(1<<rnd.Intn(31))|1, rnd.Uint32()>>rnd.Intn(32)
		if got, want := modulo(h, n, ^uint64(0)/uint64(n)+1), int(h%uint32(n)); got != want {
			t.Fatalf("%d modulo %d: %d, want %d", h, n, got, want)
		}
	}
}
