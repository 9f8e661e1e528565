package testsst

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"kvferry/store"
)

// Wrapping orders keys of a letter and an int64 by the sign of a difference that may overflow.
var Wrapping = store.Comparer{Name: "test.wrapping", Compare: CompareWrapping, Wrapping: &store.Wrapping{
	Number: func(key []byte) (int64, bool) {
		if len(key) != 9 {
			return 0, false
		}
		return int64(binary.BigEndian.Uint64(key[1:])), true
	},
	Bounds: func(key []byte) (lo, hi []byte) { return bytes.Clone(key[:1]), []byte{key[0] + 1} },
}}

// CompareWrapping is the order of Wrapping. A letter alone precedes its numbers.
func CompareWrapping(a, b []byte) int {
	if len(a) != 9 || len(b) != 9 || a[0] != b[0] {
		return bytes.Compare(a, b)
	}
	return cmp.Compare(int64(binary.BigEndian.Uint64(a[1:])-binary.BigEndian.Uint64(b[1:])), 0)
}

func WrappingKey(letter byte, n int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{letter}, uint64(n))
}
