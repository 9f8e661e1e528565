package blocks

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"kvferry/store/rocks/base"
)

// Constants of the Bloom filter hash in LevelDB and older RocksDB.
const (
	filterSeed = 0xbc9f1d34
	filterMul  = 0xc6a4a793
)

// Filter is a Bloom filter. The engine reads a table only for keys that match its filter.
type Filter interface {
	// Has reports whether the filter matches a user key of the data block at off.
	Has(off uint64, key []byte) bool
}

// ErrFilter is the error of an invalid filter block.
var ErrFilter = errors.New("not a filter block")

// Denied returns the first user key of the data block at off that the filter excludes, or nil.
func (b *Block) Denied(f Filter, off uint64) []byte {
	for e := (Entries{Data: b.Entries}); ; {
		if ok, err := e.Next(); !ok || err != nil || len(e.Key) < base.TrailerLen {
			return nil
		}
		if user, _ := base.SplitKey(e.Key); !f.Has(off, user) {
			return user
		}
	}
}

// blockFilters is the filter block of LevelDB's only policy, and of RocksDB's up to 6.x: one filter for the keys of all
// data blocks that start in the same 2^base bytes of the file. The engine skips a block if the filter excludes the key.
//
//	+---------+-----+-----------------------------+------------------+-----------+
//	| filters | …   | offset of each filter (4B)… | of these (4B)    | base (1B) |
//	+---------+-----+-----------------------------+------------------+-----------+
//	filter: bits, then the number of probes (1B); of 0 bytes: no key
//
// Little endian.
type blockFilters struct {
	data, offsets []byte
	base          byte
	signed        bool
}

// maxProbes is the largest number of probes; a filter with more matches every key.
const maxProbes = 30

// OpenBlockFilters parses a filter block of LevelDB, or of RocksDB.
func OpenBlockFilters(b []byte, levelDB bool) (Filter, error) {
	n := len(b) - 5
	if n < 0 {
		return nil, ErrFilter
	}
	at := binary.LittleEndian.Uint32(b[n:])
	if uint64(at) > uint64(n) || b[n+4] > 63 {
		return nil, ErrFilter
	}
	return &blockFilters{data: b[:at], offsets: b[at : n+4], base: b[n+4], signed: !levelDB}, nil
}

// Has implements Filter.
func (f *blockFilters) Has(off uint64, key []byte) bool {
	filter, ok := f.of(off)
	return !ok || mayHave(filter, bloomHash(key, f.signed))
}

// of returns the filter of the block at off; without one, the engine reads the block.
func (f *blockFilters) of(off uint64) ([]byte, bool) {
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

// mayHave reports whether the filter matches a key's hash.
func mayHave(filter []byte, h uint32) bool {
	if len(filter) < 2 {
		return false
	}
	n, probes := uint32(len(filter)-1)*8, filter[len(filter)-1]
	if probes > maxProbes {
		return true
	}
	d := bits.RotateLeft32(h, 15)
	for range probes {
		if filter[h%n/8]&(1<<(h%n%8)) == 0 {
			return false
		}
		h += d
	}
	return true
}

// bloomHash is Hash of util/hash.cc with filterSeed. RocksDB takes the last bytes as signed, LevelDB as unsigned.
func bloomHash(key []byte, signed bool) uint32 {
	h := filterSeed ^ uint32(len(key))*filterMul
	for ; len(key) >= 4; key = key[4:] {
		h = (h + binary.LittleEndian.Uint32(key)) * filterMul
		h ^= h >> 16
	}
	if len(key) == 0 {
		return h
	}
	for i, b := range key {
		c := uint32(b)
		if signed {
			c = uint32(int8(b))
		}
		h += c << (8 * i)
	}
	h *= filterMul
	return h ^ h>>24
}
