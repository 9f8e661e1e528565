package blocks

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"
)

// A full filter is RocksDB's filter of all keys of a table, or of a partition. Its last 5 bytes begin with the form:
//
//	+-----------------+----------------+----------------------+
//	| lines           | probes, 1…127  | number of lines (4B) |   old form
//	+-----------------+----------------+----------------------+
//	| lines, 64B each | ff | 0 | probes in the low 5 bits | 0 0 |  since format_version 5
//	+-----------------+----------------------------------------+
//
// Little endian. All bits of a key are in one line. The old form has lines of any power of two, since another machine may
// have other cache lines. To RocksDB, a filter of any other form matches all keys, and a filter without lines matches none.
const fullTail = 5

// noFilter matches no key.
type noFilter struct{}

// Has implements Filter.
func (noFilter) Has(uint64, []byte) bool { return false }

// OpenFullFilter parses a full filter; nil if RocksDB takes it to match every key, or if it is a Ribbon filter.
func OpenFullFilter(b []byte) Filter {
	n := len(b) - fullTail
	if n <= 0 {
		return noFilter{}
	}
	lines, tail := b[:n], b[n:]
	if tail[0] == 0xff {
		probes := tail[2]
		if n >= localLine && tail[1] == 0 && probes >= 1 && probes <= maxProbes && tail[3] == 0 && tail[4] == 0 {
			return &localBloom{lines, int(probes)}
		}
		return nil
	}
	count := binary.LittleEndian.Uint32(tail[1:])
	if tail[0] == 0 || tail[0] > 127 || count == 0 || uint64(n)%uint64(count) != 0 {
		return nil
	}
	if width := uint32(n) / count; width&(width-1) == 0 {
		return &lineBloom{lines, count, 8*width - 1, int(tail[0])}
	}
	return nil
}

// lineBloom is the old form.
type lineBloom struct {
	lines  []byte
	count  uint32
	mask   uint32 // of a bit's number in its line
	probes int
}

// Has implements Filter.
func (f *lineBloom) Has(_ uint64, key []byte) bool {
	h := bloomHash(key, true)
	width := len(f.lines) / int(f.count)
	line := f.lines[int(h%f.count)*width:][:width]
	d := bits.RotateLeft32(h, 15)
	for range f.probes {
		bit := h & f.mask
		if line[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
		h += d
	}
	return true
}

// localLine is the length of a line of localBloom, whose bits have 9-bit numbers.
const localLine = 64

// localBloom is the form since format_version 5.
type localBloom struct {
	lines  []byte
	probes int
}

// Has implements Filter.
func (f *localBloom) Has(_ uint64, key []byte) bool {
	h64 := previewHash(key)
	at := uint64(uint32(h64)) * uint64(len(f.lines)/localLine) >> 32 * localLine
	line := f.lines[at:][:localLine]
	h := uint32(h64 >> 32)
	for range f.probes {
		bit := h >> (32 - 9)
		if line[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
		h *= 0x9e3779b9
	}
	return true
}

// Partitions is RocksDB's partitioned filter: a full filter for the keys up to each key of its index.
type Partitions struct {
	Compare func(a, b []byte) int
	parts   []partition
	at      int // the partition that was asked last
}

type partition struct {
	last   []byte // no key is greater, but in the last partition
	handle Handle
	filter Filter // nil matches every key
}

// Add adds the filter b of the keys up to last.
func (p *Partitions) Add(last []byte, h Handle, b []byte) {
	p.parts = append(p.parts, partition{bytes.Clone(last), h, OpenFullFilter(b)})
}

// Empty reports whether the filter has no partitions.
func (p *Partitions) Empty() bool { return len(p.parts) == 0 }

// Handle returns the block of the partition that was asked last.
func (p *Partitions) Handle() Handle { return p.parts[p.at].handle }

// Has implements Filter.
func (p *Partitions) Has(off uint64, key []byte) bool {
	if p.Compare(p.parts[p.at].last, key) < 0 || p.at > 0 && p.Compare(p.parts[p.at-1].last, key) >= 0 {
		n := sort.Search(len(p.parts), func(i int) bool { return p.Compare(p.parts[i].last, key) >= 0 })
		p.at = min(n, len(p.parts)-1)
	}
	f := p.parts[p.at].filter
	return f == nil || f.Has(off, key)
}
