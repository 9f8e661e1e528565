package pq

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Limits of a dictionary. A column whose values differ more than that is written plain.
const (
	maxEntries = 1 << 15
	maxDict    = 512 << 10
	maxKey     = 1 << 10 // bytes of a value
)

// dictionary holds the values of a chunk that repeat.
type dictionary struct {
	plain []byte // the entries, encoded
	ends  []uint32
	table []uint32 // index+1 by hash; nil for a dictionary of runs
	runs  bool     // equal values follow each other: only the last entry is looked at
	large bool     // full: other values are written plain
}

func newDictionary(runs bool) *dictionary {
	d := &dictionary{runs: runs}
	if !runs {
		d.table = make([]uint32, 1<<10)
	}
	return d
}

// reset empties the dictionary for the next chunk.
func (d *dictionary) reset() {
	d.plain, d.ends, d.large = d.plain[:0], d.ends[:0], false
	if !d.runs {
		if len(d.table) > 1<<10 {
			d.table = make([]uint32, 1<<10)
		}
		clear(d.table)
	}
}

func (d *dictionary) entry(i uint32) []byte {
	from := uint32(0)
	if i > 0 {
		from = d.ends[i-1]
	}
	return d.plain[from+4 : d.ends[i]]
}

// find returns the index of a value, which it adds if it is new; false if it does not fit.
func (d *dictionary) find(v []byte) (uint32, bool) {
	n := uint32(len(d.ends))
	if d.runs {
		if n > 0 && bytes.Equal(d.entry(n-1), v) {
			return n - 1, true
		}
		d.add(v)
		return n, true
	}
	if d.large || len(v) > maxKey {
		return 0, false
	}
	at := xxh3.Hash(v) & uint64(len(d.table)-1)
	for ; d.table[at] != 0; at = (at + 1) & uint64(len(d.table)-1) {
		if i := d.table[at] - 1; bytes.Equal(d.entry(i), v) {
			return i, true
		}
	}
	if n == maxEntries || len(d.plain)+len(v) > maxDict {
		d.large = true
		return 0, false
	}
	d.add(v)
	d.table[at] = n + 1
	if len(d.ends)*2 > len(d.table) {
		d.grow()
	}
	return n, true
}

func (d *dictionary) add(v []byte) {
	d.plain = append(binary.LittleEndian.AppendUint32(d.plain, uint32(len(v))), v...)
	d.ends = append(d.ends, uint32(len(d.plain)))
}

func (d *dictionary) grow() {
	d.table = make([]uint32, 2*len(d.table))
	for i := range d.ends {
		at := xxh3.Hash(d.entry(uint32(i))) & uint64(len(d.table)-1)
		for d.table[at] != 0 {
			at = (at + 1) & uint64(len(d.table)-1)
		}
		d.table[at] = uint32(i) + 1
	}
}
