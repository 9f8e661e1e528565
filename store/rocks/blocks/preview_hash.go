package blocks

import (
	"encoding/binary"
	"math/bits"
)

// Primes of xxHash.
const (
	prime32a = 0x9e3779b1
	prime32b = 0x85ebca77
	prime32c = 0xc2b2ae3d
	prime64a = 0x9e3779b185ebca87
	prime64b = 0xc2b2ae3d27d4eb4f
	prime64c = 0x165667b19e3779f9
	prime64d = 0x85ebca77c2b2ae63
	prime64e = 0x27d4eb2f165667c5
)

// previewSecret is the default secret of XXH3.
const previewSecret = "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe\x7c\x01\x81\x2c\xf7\x21\xad\x1c\xde\xd4\x6d\xe9\x83\x90\x97\xdb\x72\x40\xa4\xa4\xb7\xb3\x67\x1f" +
	"\xcb\x79\xe6\x4e\xcc\xc0\xe5\x78\x82\x5a\xd0\x7d\xcc\xff\x72\x21\xb8\x08\x46\x74\xf7\x43\x24\x8e\xe0\x35\x90\xe6\x81\x3a\x26\x4c" +
	"\x3c\x28\x52\xbb\x91\xc3\x00\xcb\x88\xd0\x65\x8b\x1b\x53\x2e\xa3\x71\x64\x48\x97\xa2\x0d\xf9\x4e\x38\x19\xef\x46\xa9\xde\xac\xd8" +
	"\xa8\xfa\x76\x3f\xe3\x9c\x34\x3f\xf9\xdc\xbb\xc7\xc7\x0b\x4f\x1d\x8a\x51\xe0\x4b\xcd\xb4\x59\x31\xc8\x9f\x7e\xc9\xd9\x78\x73\x64" +
	"\xea\xc5\xac\x83\x34\xd3\xeb\xc3\xc5\x81\xa0\xff\xfa\x13\x63\xeb\x17\x0d\xdd\x51\xb7\xf0\xda\x49\xd3\x16\x55\x26\x29\xd4\x68\x9e" +
	"\x2b\x16\xbe\x58\x7d\x47\xa1\xfc\x8f\xf8\xb8\xd1\x7a\xd0\x31\xce\x45\xcb\x3a\x8f\x95\x16\x04\x28\xaf\xd7\xfb\xca\xbb\x4b\x40\x7e"

// Lengths that change the way of hashing.
const (
	previewMiddle = 128 // keys above take a second round
	previewLong   = 240 // keys above are hashed in stripes
	stripeLen     = 64
	stripesBlock  = (len(previewSecret) - stripeLen) / 8
)

// secret64 returns 8 bytes of the secret.
func secret64(at int) uint64 {
	s := previewSecret[at : at+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// fold multiplies to 128 bits and combines the halves.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// avalanche ends a hash.
func avalanche(h uint64) uint64 {
	h = (h ^ h>>37) * prime64c
	return h ^ h>>32
}

// previewHash is RocksDB's Hash64: XXH3 of xxHash 0.7.2, a preview whose hashes differ from those of the final XXH3
// (util/xxph3.h, where an empty key has a hash of its own).
func previewHash(b []byte) uint64 {
	n := uint64(len(b))
	switch le := binary.LittleEndian; {
	case n == 0:
		return fold(secret64(0), prime64b)
	case n < 4:
		x := uint32(b[0]) | uint32(b[n/2])<<8 | uint32(b[n-1])<<16 | uint32(n)<<24
		return avalanche(uint64(x^uint32(secret64(0))) * prime64a)
	case n <= 8:
		x := (uint64(le.Uint32(b)) | uint64(le.Uint32(b[n-4:]))<<32) ^ secret64(0)
		x = n + (x^x>>51)*prime32a
		return avalanche((x ^ x>>47) * prime64b)
	case n <= 16:
		lo, hi := le.Uint64(b)^secret64(0), le.Uint64(b[n-8:])^secret64(8)
		return avalanche(n + lo + hi + fold(lo, hi))
	case n <= previewMiddle:
		h := n * prime64a
		for i := int(n-1) / 32; i >= 0; i-- { // from both ends towards the middle
			h += mix16(b[16*i:], 32*i) + mix16(b[int(n)-16*(i+1):], 32*i+16)
		}
		return avalanche(h)
	case n <= previewLong:
		return previewOfMiddle(b)
	}
	return previewOfLong(b)
}

// mix16 combines 16 bytes of the key with 16 bytes of the secret.
func mix16(b []byte, at int) uint64 {
	return fold(binary.LittleEndian.Uint64(b)^secret64(at), binary.LittleEndian.Uint64(b[8:])^secret64(at+8))
}

func previewOfMiddle(b []byte) uint64 {
	h := uint64(len(b)) * prime64a
	for i := range 8 {
		h += mix16(b[16*i:], 16*i)
	}
	h = avalanche(h)
	for i := 8; i < len(b)/16; i++ {
		h += mix16(b[16*i:], 16*(i-8)+3)
	}
	return avalanche(h + mix16(b[len(b)-16:], 136-17))
}

// lanes are the sums of a long key.
type lanes [8]uint64

// add adds a stripe.
func (l *lanes) add(b []byte, at int) {
	for i := range l {
		x := binary.LittleEndian.Uint64(b[8*i:])
		k := x ^ secret64(at+8*i)
		l[i] += x + k&0xffffffff*(k>>32)
	}
}

// scramble ends a block of stripes.
func (l *lanes) scramble() {
	for i, x := range l {
		l[i] = (x ^ x>>47 ^ secret64(len(previewSecret)-stripeLen+8*i)) * prime32a
	}
}

func previewOfLong(b []byte) uint64 {
	l := lanes{prime32c, prime64a, prime64b, prime64c, prime64d, prime32b, prime64e, prime32a}
	n, last := len(b), b[len(b)-stripeLen:]
	for i := 0; len(b) >= stripeLen; b = b[stripeLen:] {
		l.add(b, 8*i)
		if i++; i == stripesBlock {
			l.scramble()
			i = 0
		}
	}
	if len(b) > 0 {
		l.add(last, len(previewSecret)-stripeLen-7)
	}
	h := uint64(n) * prime64a
	for i := 0; i < len(l); i += 2 {
		h += fold(l[i]^secret64(11+8*i), l[i+1]^secret64(11+8*i+8))
	}
	return avalanche(h)
}
