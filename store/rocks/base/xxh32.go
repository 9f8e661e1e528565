package base

import (
	"encoding/binary"
	"math/bits"
)

// Primes of xxHash32.
const (
	prime1 = 2654435761
	prime2 = 2246822519
	prime3 = 3266489917
	prime4 = 668265263
	prime5 = 374761393
)

// XXH32 is xxHash32 with seed 0.
func XXH32(b []byte) uint32 {
	n := uint32(len(b))
	h := uint32(prime5)
	if len(b) >= 16 {
		var seed uint32
		v1, v2, v3, v4 := seed+prime1, seed+prime2, seed, seed
		v1 += prime2
		v4 -= prime1
		for len(b) >= 16 {
			v1 = round32(v1, binary.LittleEndian.Uint32(b))
			v2 = round32(v2, binary.LittleEndian.Uint32(b[4:]))
			v3 = round32(v3, binary.LittleEndian.Uint32(b[8:]))
			v4 = round32(v4, binary.LittleEndian.Uint32(b[12:]))
			b = b[16:]
		}
		h = bits.RotateLeft32(v1, 1) + bits.RotateLeft32(v2, 7) + bits.RotateLeft32(v3, 12) + bits.RotateLeft32(v4, 18)
	}
	h += n
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*prime3, 17) * prime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}

// round32 mixes four bytes into a lane.
func round32(v, x uint32) uint32 { return bits.RotateLeft32(v+x*prime2, 13) * prime1 }
