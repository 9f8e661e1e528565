package base

import (
	"cmp"
	"encoding/binary"
	"math/bits"
)

// Trailer packs a sequence number and a kind into the trailer of an internal key.
func Trailer(seq uint64, kind byte) uint64 { return seq<<8 | uint64(kind) }

// SplitKey splits an internal key. k must have at least TrailerLen bytes.
func SplitKey(k []byte) (user []byte, tr uint64) {
	n := len(k) - TrailerLen
	return k[:n:n], binary.LittleEndian.Uint64(k[n:])
}

// AppendKey appends an internal key.
func AppendKey(dst, user []byte, tr uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, user...), tr)
}

// CompareKeys orders internal keys: user key ascending, then newest first.
func CompareKeys(compare func(a, b []byte) int, a, b []byte) int {
	ua, ta := SplitKey(a)
	ub, tb := SplitKey(b)
	if c := compare(ua, ub); c != 0 {
		return c
	}
	return cmp.Compare(tb, ta)
}

// CommonPrefix returns the length of the common prefix of a and b, which is known to be at least n.
func CommonPrefix(a, b []byte, n int) int {
	m := min(len(a), len(b))
	for n+8 <= m {
		x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:])
		if x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
		n += 8
	}
	for n < m && a[n] == b[n] {
		n++
	}
	return n
}
