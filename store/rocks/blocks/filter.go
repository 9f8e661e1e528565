package blocks

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"kvferry/store/rocks/base"
)

// Constants of the Bloom filter hash in LevelDB and older RocksDB.
const (
	FilterSeed = 0xbc9f1d34
	FilterMul  = 0xc6a4a793
)

// LevelFilter is LevelDB's filter block, of its only policy: one filter for the keys of all data blocks that start in
// the same 2^base bytes of the file. LevelDB skips a block if the filter excludes the key.
//
//	+---------+-----+-----------------------------+------------------+-----------+
//	| filters | …   | offset of each filter (4B)… | of these (4B)    | base (1B) |
//	+---------+-----+-----------------------------+------------------+-----------+
//	filter: bits, then the number of probes (1B); of 0 bytes: no key
//
// Little endian.
type LevelFilter struct {
	data, offsets []byte
	base          byte
}

// maxProbes is the largest number of probes; a filter with more matches every key.
const maxProbes = 30

// ErrFilter is the error of an invalid filter block.
var ErrFilter = errors.New("not a filter block")

// OpenLevelFilter parses a filter block.
func OpenLevelFilter(b []byte) (*LevelFilter, error) {
	n := len(b) - 5
	if n < 0 {
		return nil, ErrFilter
	}
	at := binary.LittleEndian.Uint32(b[n:])
	if uint64(at) > uint64(n) || b[n+4] > 63 {
		return nil, ErrFilter
	}
	return &LevelFilter{data: b[:at], offsets: b[at : n+4], base: b[n+4]}, nil
}

// Misses returns the first user key of the data block at off that the filter excludes, or nil.
func (f *LevelFilter) Misses(off uint64, b *Block) []byte {
	filter, has := f.of(off)
	for e := (Entries{Data: b.Entries}); has; {
		if ok, err := e.Next(); !ok || err != nil || len(e.Key) < base.TrailerLen {
			return nil
		}
		if user, _ := base.SplitKey(e.Key); !mayHave(filter, user) {
			return user
		}
	}
	return nil
}

// of returns the filter of the block at off; without one, LevelDB reads the block.
func (f *LevelFilter) of(off uint64) ([]byte, bool) {
	i := off >> f.base
	if i >= uint64(len(f.offsets)/4-1) {
		return nil, false
	}
	from, to := binary.LittleEndian.Uint32(f.offsets[4*i:]), binary.LittleEndian.Uint32(f.offsets[4*i+4:])
	if from > to || uint64(to) > uint64(len(f.data)) {
		return nil, false
	}
	return f.data[from:to], true
}

// mayHave reports whether the filter matches a key.
func mayHave(filter, key []byte) bool {
	if len(filter) < 2 {
		return false
	}
	n, probes := uint32(len(filter)-1)*8, filter[len(filter)-1]
	if probes > maxProbes {
		return true
	}
	h := levelHash(key)
	d := bits.RotateLeft32(h, 15)
	for range probes {
		if filter[h%n/8]&(1<<(h%n%8)) == 0 {
			return false
		}
		h += d
	}
	return true
}

// levelHash is Hash of util/hash.cc; LevelDB treats the last bytes as unsigned, unlike RocksDB.
func levelHash(key []byte) uint32 {
	h := FilterSeed ^ uint32(len(key))*FilterMul
	for ; len(key) >= 4; key = key[4:] {
		h = (h + binary.LittleEndian.Uint32(key)) * FilterMul
		h ^= h >> 16
	}
	if len(key) == 0 {
		return h
	}
	for i, b := range key {
		h += uint32(b) << (8 * i)
	}
	h *= FilterMul
	return h ^ h>>24
}
