// Package keyslot computes the slots of keys in clusters of Redis and Valkey.
package keyslot

import (
	"bytes"
	"slices"
)

// Count is the number of slots of a cluster.
const Count = 16384

// crcTable is the table of CRC16-CCITT: polynomial 1021, not reflected.
var crcTable = func() (t [256]uint16) {
	for i := range t {
		c := uint16(i) << 8
		for range 8 {
			if c&0x8000 != 0 {
				c = c<<1 ^ 0x1021
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()

// Tag is the part of a key that determines its slot: the bytes between the first { and the next }, or the
// whole key if these are missing or empty.
func Tag(key []byte) []byte {
	if i := bytes.IndexByte(key, '{'); i >= 0 {
		if j := bytes.IndexByte(key[i+1:], '}'); j > 0 {
			return key[i+1 : i+1+j]
		}
	}
	return key
}

// Of returns the slot of a key in a cluster.
func Of(key []byte) int {
	var c uint16
	for _, b := range Tag(key) {
		c = c<<8 ^ crcTable[byte(c>>8)^b]
	}
	return int(c) % Count
}

// Ranges are ranges of slots: the first and the last of each.
type Ranges [][2]uint64

// Have reports whether the slot of a key is in a range.
func (r Ranges) Have(key []byte) bool {
	if len(r) == 0 {
		return false
	}
	slot := uint64(Of(key))
	return slices.ContainsFunc(r, func(x [2]uint64) bool { return x[0] <= slot && slot <= x[1] })
}
