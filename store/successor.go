package store

import "bytes"

// Successor returns the smallest byte string greater than all strings that start with b; false if no such
// string exists, because b is empty or all 0xFF.
func Successor(b []byte) ([]byte, bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			out := bytes.Clone(b[:i+1])
			out[i]++
			return out, true
		}
	}
	return nil, false
}

// KeyRange returns the range of a single key: it alone is a k with lo <= k < hi. The ends share memory.
func KeyRange(key []byte) (lo, hi []byte) {
	hi = append(append(make([]byte, 0, len(key)+1), key...), 0)
	return hi[:len(key):len(key)], hi
}

// OnlyKey returns the only byte string k with lo <= k < hi; false if there can be several, where nil is open.
func OnlyKey(lo, hi []byte) ([]byte, bool) {
	n := len(hi) - 1
	return lo, lo != nil && n == len(lo) && hi[n] == 0 && bytes.Equal(hi[:n], lo)
}
