package sst

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// levelFilter is LevelDB's filter block, of its only policy: a filter of the keys of the data blocks that start in each
// 2^base bytes of the file. LevelDB does not read a block of which the filter does not have the key.
//
//	+---------+-----+-----------------------------+------------------+-----------+
//	| filters | …   | offset of each filter (4B)… | of these (4B)    | base (1B) |
//	+---------+-----+-----------------------------+------------------+-----------+
//	filter: bits, then the number of probes (1B); of 0 bytes: no key
//
// Little endian.
type levelFilter struct {
	data, offsets []byte
	base          byte
}

// levelFilterName is how the metaindex names it.
const levelFilterName = "filter.leveldb.BuiltinBloomFilter2"

// maxProbes is the largest number of probes; what has more matches every key.
const maxProbes = 30

var errFilter = errors.New("not a filter block")

// openLevelFilter takes a filter block apart.
func openLevelFilter(b []byte) (*levelFilter, error) {
	n := len(b) - 5
	if n < 0 {
		return nil, errFilter
	}
	at := binary.LittleEndian.Uint32(b[n:])
	if uint64(at) > uint64(n) || b[n+4] > 63 {
		return nil, errFilter
	}
	return &levelFilter{data: b[:at], offsets: b[at : n+4], base: b[n+4]}, nil
}

// of returns the filter of the block at an offset; false: LevelDB has none, and reads the block.
func (f *levelFilter) of(off uint64) ([]byte, bool) {
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

// mayHave reports whether a filter has a key.
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

// levelHash is Hash of util/hash.cc, of which the last bytes are unsigned in LevelDB, unlike in hashFrom.
func levelHash(key []byte) uint32 {
	h := filterSeed ^ uint32(len(key))*filterMul
	for ; len(key) >= 4; key = key[4:] {
		h = (h + binary.LittleEndian.Uint32(key)) * filterMul
		h ^= h >> 16
	}
	if len(key) == 0 {
		return h
	}
	for i, b := range key {
		h += uint32(b) << (8 * i)
	}
	h *= filterMul
	return h ^ h>>24
}

// levelFilter compares LevelDB's filter with the keys of all data blocks. Who reads the rows reports blocks that cannot be read.
func (c *blockCheck) levelFilter(h blocks.Handle) error {
	b, err := c.r.readBlock(h, levelFilterName, checkBlock)
	if err != nil {
		return c.useless(h, err, err)
	}
	f, err := openLevelFilter(b)
	if err != nil {
		return c.useless(h, fmt.Errorf("%s: %w", levelFilterName, err), err)
	}
	var x tableIndex
	defer x.close()
	x.pass = func(blocks.Handle, []byte, error) bool { return true }
	if err := x.open(c.r); err != nil {
		return ignoreDamage(err)
	}
	for {
		ok, err := x.next()
		if !ok || err != nil {
			return ignoreDamage(err)
		}
		filter, has := f.of(x.handle().Off)
		if !has {
			continue
		}
		missed, err := c.r.missedBy(filter, x.handle())
		if err := ignoreDamage(err); err != nil {
			return err
		}
		if missed != nil {
			c.damaged(h.Off, fmt.Errorf("%s: %w %s of the block at %d", levelFilterName, ErrMissed, record.Quote(missed), x.handle().Off))
			return nil
		}
	}
}

// ErrMissed says that a filter denies a key: lookups of LevelDB do not find its row.
var ErrMissed = errors.New("the filter does not have key")

// missedBy returns the first user key of a data block that a filter does not have, nil when it has all.
func (r *Reader) missedBy(filter []byte, h blocks.Handle) ([]byte, error) {
	b, err := r.dataBlock(h)
	if err != nil {
		return nil, err
	}
	bl, err := blocks.Parse(b)
	if err != nil {
		return nil, r.Fail(int64(h.Off), "block", err)
	}
	e := blocks.Entries{Data: bl.Entries}
	for {
		ok, err := e.Next()
		if !ok || err != nil || len(e.Key) < base.TrailerLen {
			return nil, err
		}
		if user, _ := base.SplitKey(e.Key); !mayHave(filter, user) {
			return user, nil
		}
	}
}
