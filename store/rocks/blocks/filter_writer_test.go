package blocks

import (
	"encoding/binary"
	"math/rand"
	"slices"
	"testing"

	"kvferry/store/rocks/base"
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

// TestFilterHash: reusing hash states of the previous key does not change the hash.
func TestFilterHash(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	var f FilterWriter
	var last []byte
	for i := range 20_000 {
		key := slices.Clone(last[:r.Intn(len(last)+1)])
		for len(key) < len(last) && r.Intn(4) > 0 || r.Intn(3) == 0 {
			key = append(key, byte(r.Intn(256)))
		}
		f.Add(key, base.CommonPrefix(last, key, 0))
		var alone FilterWriter
		got := f.hashes[len(f.hashes)-1]
		alone.Add(key, 0)
		if got != alone.hashes[0] || f.Count() != i+1 {
			t.Fatalf("key %d of %d, %x after %x: %#x, want %#x", i, f.Count(), key, last, got, alone.hashes[0])
		}
		last = key
	}
}

// TestFilterLines: a filter has an odd number of lines, with ten bits a key at least.
func TestFilterLines(t *testing.T) {
	for keys, lines := range map[int]int{1: 1, 51: 1, 52: 3, 102: 3, 103: 3, 153: 3, 154: 5, 204: 5, 205: 5, 256: 5, 257: 7} {
		f := FilterWriter{hashes: make([]uint32, keys)}
		out := f.AppendTo(make([]byte, 3))
		if len(out) != 3+lines*64+5 || f.Size() != len(out)-3 || out[len(out)-5] != 6 ||
			binary.LittleEndian.Uint32(out[len(out)-4:]) != uint32(lines) {
			t.Errorf("%d keys: %d bytes, want %d lines; it ends in %x", keys, len(out), lines, out[len(out)-5:])
		}
	}
}
