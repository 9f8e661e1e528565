package live

import (
	"bytes"
	"strconv"
)

// slots is how many a cluster has.
const slots = 16384

// crcTable is that of CRC16-CCITT: polynomial 1021, not reflected.
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

// hashed is the part of a key that says where it lies in a cluster: what is between the first { and the next },
// or all of it.
func hashed(key []byte) []byte {
	if i := bytes.IndexByte(key, '{'); i >= 0 {
		if j := bytes.IndexByte(key[i+1:], '}'); j > 0 {
			return key[i+1 : i+1+j]
		}
	}
	return key
}

// slot is where a key lies in a cluster.
func slot(key []byte) int {
	var c uint16
	for _, b := range hashed(key) {
		c = c<<8 ^ crcTable[byte(c>>8)^b]
	}
	return int(c) % slots
}

// besides returns a temporary name that begins with a unique text, in the slot of a key. Where no tag leads there, names
// are tried: one of 16384 does.
func besides(key []byte, unique string) []byte {
	name := []byte(unique)
	if tag := hashed(key); len(tag) > 0 && bytes.IndexByte(tag, '}') < 0 {
		return append(append(append(name, '{'), tag...), '}')
	}
	for at, n := slot(key), uint64(0); ; n++ {
		if try := strconv.AppendUint(append(name, '-'), n, 36); slot(try) == at {
			return try
		}
	}
}
