package blocks

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	filterBits   = 10 // per key, the usual setting of RocksDB
	filterProbes = 6  // filterBits × ln 2
	filterLine   = 64 // bytes; all bits of a key lie in one line
)

// FilterWriter collects the keys of a table and builds their full filter, which RocksDB supports since 3.8:
//
//	+------------+------------+-------------+----------------+
//	| lines, 64B each …       | probes (1B) | lines' n (4B)  |
//	+------------+------------+-------------+----------------+
//
// Little endian. The number of lines n is odd; a key's line is its hash modulo n.
type FilterWriter struct {
	full   [][]uint32 // of hashes
	hashes []uint32   // not yet in full
	free   [][]uint32 // buffers for reuse
	words  []uint64   // buffer for lines

	length int      // of the last key
	states []uint32 // of its hash, before every four bytes
}

// hashesAtOnce is the capacity of a list of hashes: a single growing list would be copied.
const hashesAtOnce = 16 << 10

// grow makes room for hashes.
func (f *FilterWriter) grow() {
	if f.hashes != nil {
		f.full = append(f.full, f.hashes)
	}
	if n := len(f.free); n > 0 {
		f.hashes, f.free = f.free[n-1], f.free[:n-1]
		return
	}
	f.hashes = make([]uint32, 0, hashesAtOnce)
}

// Emptied returns a FilterWriter with the same buffers, except the states, which a large key may have grown.
func (f *FilterWriter) Emptied() FilterWriter {
	out := FilterWriter{full: f.full[:0], free: f.free, words: f.words}
	for _, room := range f.full {
		out.free = append(out.free, room[:0])
	}
	if f.hashes != nil {
		out.free = append(out.free, f.hashes[:0])
	}
	return out
}

// Add adds a user key that shares shared bytes with the last key.
func (f *FilterWriter) Add(key []byte, shared int) {
	if f.length != len(key) || len(f.states) == 0 {
		shared, f.length = 0, len(key)
		f.states = slices.Grow(f.states[:0], len(key)/4+1)[:len(key)/4+1]
		f.states[0] = filterSeed ^ uint32(len(key))*filterMul
	}
	if len(f.hashes) == cap(f.hashes) {
		f.grow()
	}
	f.hashes = append(f.hashes, hashFrom(f.states, key, shared/4))
}

// hashFrom is Hash of util/hash.cc with the filter seed, resumed from the state after n four-byte words; it stores the
// following states. RocksDB treats the last bytes as signed.
func hashFrom(states []uint32, key []byte, n int) uint32 {
	h := states[n]
	i := 4 * n
	for states = states[n+1:]; len(states) > 0 && i+4 <= len(key); states = states[1:] {
		h = (h + binary.LittleEndian.Uint32(key[i:])) * filterMul
		h ^= h >> 16
		states[0] = h
		i += 4
	}
	switch key = key[i:]; len(key) {
	case 3:
		h += uint32(int8(key[2])) << 16
		fallthrough
	case 2:
		h += uint32(int8(key[1])) << 8
		fallthrough
	case 1:
		h += uint32(int8(key[0]))
		h *= filterMul
		h ^= h >> 24
	}
	return h
}

// Count is the number of keys.
func (f *FilterWriter) Count() int { return len(f.full)*hashesAtOnce + len(f.hashes) }

// lines is the number of lines.
func (f *FilterWriter) lines() int { return (f.Count()*filterBits+8*filterLine-1)/(8*filterLine) | 1 }

// Size is the number of bytes that AppendTo appends.
func (f *FilterWriter) Size() int { return f.lines()*filterLine + 5 }

// AppendTo appends the filter.
func (f *FilterWriter) AppendTo(dst []byte) []byte {
	n := f.lines()
	if f.words = f.words[:0]; cap(f.words) < n*lineWords {
		f.words = make([]uint64, 0, n*lineWords)
	}
	f.words = f.words[:n*lineWords]
	clear(f.words)
	for _, hashes := range f.full {
		setBits(f.words, n, hashes)
	}
	setBits(f.words, n, f.hashes)
	at := len(dst)
	dst = slices.Grow(dst, f.Size())[:at+f.Size()]
	filter := dst[at:]
	for i, w := range f.words {
		binary.LittleEndian.PutUint64(filter[8*i:], w)
	}
	filter[n*filterLine] = filterProbes
	binary.LittleEndian.PutUint32(filter[n*filterLine+1:], uint32(n))
	return dst
}

const lineWords = filterLine / 8

// setBits sets the bits of hashes in n lines.
func setBits(words []uint64, n int, hashes []uint32) {
	inverse := ^uint64(0)/uint64(n) + 1
	for _, h := range hashes {
		line := (*[lineWords]uint64)(words[modulo(h, n, inverse)*lineWords:])
		d := bits.RotateLeft32(h, 15)
		line[h>>6%lineWords] |= 1 << (h & 63)
		h += d
		line[h>>6%lineWords] |= 1 << (h & 63)
		h += d
		line[h>>6%lineWords] |= 1 << (h & 63)
		h += d
		line[h>>6%lineWords] |= 1 << (h & 63)
		h += d
		line[h>>6%lineWords] |= 1 << (h & 63)
		h += d
		line[h>>6%lineWords] |= 1 << (h & 63)
	}
}

// modulo returns h % n by multiplications alone (Lemire, Kaser, Kurz 2019); inverse is 2^64 / n, rounded up.
func modulo(h uint32, n int, inverse uint64) int {
	hi, _ := bits.Mul64(inverse*uint64(h), uint64(n))
	return int(hi)
}
