package record

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// TestIDSet checks that a set contains exactly the ids added, in any order of queries.
func TestIDSet(t *testing.T) {
	id := func(ms, seq uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, ms), seq)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	var s IDSet
	for round := range 20 {
		s.Reset()
		in := map[string]bool{}
		var all [][]byte
		ms, seq := uint64(0), uint64(0)
		for range 100 {
			seq += 1 + rnd.Uint64N(3)
			if rnd.IntN(2) == 0 {
				ms, seq = ms+1+rnd.Uint64N(1<<rnd.IntN(40)), rnd.Uint64N(3)
			}
			all = append(all, id(ms, seq), id(ms, seq+1), id(ms+1, seq))
			if rnd.IntN(3) > 0 && round > 0 {
				s.Add(id(ms, seq))
				in[string(id(ms, seq))] = true
			}
		}
		all = append(all, id(0, 0), id(math.MaxUint64, math.MaxUint64))
		if rnd.IntN(2) == 0 {
			s.Add(id(math.MaxUint64, math.MaxUint64))
			in[string(id(math.MaxUint64, math.MaxUint64))] = true
		}
		for range 3 {
			for _, x := range all {
				if s.Has(x) != in[string(x)] {
					t.Fatalf("round %d: %x is said to be in: %v", round, x, !in[string(x)])
				}
			}
			rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		if n := len(s.data); n > 20+4*len(in)+7*40 {
			t.Errorf("%d ids take %d bytes", len(in), n)
		}
	}
}
