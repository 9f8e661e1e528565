package sst

import "encoding/binary"

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
type filterWriter struct{ hashes []uint32 }

// add takes a user key.
func (f *filterWriter) add(key []byte) { f.hashes = append(f.hashes, filterHash(key)) }

// filterHash is Hash of util/hash.cc under the seed of filters. Its last bytes are signed there.
func filterHash(b []byte) uint32 {
	const m = 0xc6a4a793
	h := uint32(0xbc9f1d34) ^ uint32(len(b))*m
	for ; len(b) >= 4; b = b[4:] {
		h = (h + binary.LittleEndian.Uint32(b)) * m
		h ^= h >> 16
	}
	if len(b) > 0 {
		for i := len(b) - 1; i >= 0; i-- {
			h += uint32(int8(b[i])) << (8 * i)
		}
		h *= m
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
	bits := dst[at:]
	clear(bits)
	for _, h := range f.hashes {
		line := bits[int(h%uint32(n))*filterLine:][:filterLine]
		delta := h>>17 | h<<15
		for range filterProbes {
			line[h>>3%filterLine] |= 1 << (h & 7)
			h += delta
		}
	}
	bits[n*filterLine] = filterProbes
	binary.LittleEndian.PutUint32(bits[n*filterLine+1:], uint32(n))
	return dst
}
