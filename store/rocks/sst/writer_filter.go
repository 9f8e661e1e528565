package sst

import (
	"encoding/binary"
	"math/bits"
)

const (
	filterBits   = 10 // a key, what RocksDB's users take by default
	filterProbes = 6  // filterBits × ln 2
	filterLine   = 64 // bytes; all bits of a key are in one line
)

// filterWriter collects the keys of a table and makes the full filter of them that RocksDB knows since 3.8:
//
//	+------------+------------+-------------+----------------+
//	| lines, 64B each …       | probes (1B) | lines' n (4B)  |
//	+------------+------------+-------------+----------------+
//
// Little endian. The number of lines is odd; a key's hash modulo n is its line.
type filterWriter struct {
	hashes []uint32
	length int      // of the last key
	states []uint32 // of its hash, before each four bytes
}

// add takes a user key, which shares so many bytes with the last one.
func (f *filterWriter) add(key []byte, shared int) {
	if shared/4 >= len(f.states) || f.length != len(key) {
		shared, f.length = 0, len(key)
		f.states = append(f.states[:0], filterSeed^uint32(len(key))*filterMul)
	}
	f.hashes = append(f.hashes, f.hash(key, shared/4))
}

// Numbers of the hash.
const (
	filterSeed = 0xbc9f1d34
	filterMul  = 0xc6a4a793
)

// hash is Hash of util/hash.cc under the seed of filters, from the state on that n times four bytes left. Its last bytes are
// signed there.
func (f *filterWriter) hash(key []byte, n int) uint32 {
	h, b := f.states[n], key[4*n:]
	states := f.states[:n+1]
	for ; len(b) >= 4; b = b[4:] {
		h = (h + binary.LittleEndian.Uint32(b)) * filterMul
		h ^= h >> 16
		states = append(states, h)
	}
	f.states = states
	if len(b) > 0 {
		for i := len(b) - 1; i >= 0; i-- {
			h += uint32(int8(b[i])) << (8 * i)
		}
		h *= filterMul
		h ^= h >> 24
	}
	return h
}

// appendTo appends the filter.
func (f *filterWriter) appendTo(dst []byte) []byte {
	n := (len(f.hashes)*filterBits + 8*filterLine - 1) / (8 * filterLine)
	n |= 1
	at := len(dst)
	dst = growExact(dst, n*filterLine+5)[:at+n*filterLine+5]
	filter := dst[at:]
	clear(filter)
	inverse := ^uint64(0)/uint64(n) + 1
	for _, h := range f.hashes {
		line := filter[modulo(h, n, inverse)*filterLine:][:filterLine]
		delta := h>>17 | h<<15
		for range filterProbes {
			line[h>>3%filterLine] |= 1 << (h & 7)
			h += delta
		}
	}
	filter[n*filterLine] = filterProbes
	binary.LittleEndian.PutUint32(filter[n*filterLine+1:], uint32(n))
	return dst
}

// modulo returns h % n by multiplications alone (Lemire, Kaser, Kurz 2019); inverse is 2^64 / n, rounded up.
func modulo(h uint32, n int, inverse uint64) int {
	hi, _ := bits.Mul64(inverse*uint64(h), uint64(n))
	return int(hi)
}
