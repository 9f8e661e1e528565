package blocks

import (
	"bytes"
	"sort"
)

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

// Empty reports whether there are no partitions.
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
