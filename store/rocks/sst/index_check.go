package sst

import (
	"errors"
	"slices"

	"kvferry/store/rocks/blocks"
)

// All engines write data blocks back to back from the start of the file, with one index entry for each. So an index
// whose blocks leave a gap has lost an entry or points to a wrong block, even if its checksum matches.
var (
	errGap     = errors.New("the index does not list the block at this offset")
	errNoBlock = errors.New("the index lists no block, but engines never write a table without rows")
	errTwice   = errors.New("the index lists a different block in place of the block at this offset")
)

// maxFaults bounds the faults kept for an index block.
const maxFaults = 16

// indexFault is a fault of an index block.
type indexFault struct {
	h    blocks.Handle // the missing data blocks; otherwise the index block
	sep  []byte        // upper bound of the missing keys; nil: no rows are missing
	err  error
	late bool // reported when a walk reaches the entry
}

// indexCheck validates an index block right after it is read, so that seeks can rely on its restart points, and a
// missing entry is found without walking past it.
type indexCheck struct {
	*cachedBlock
	x     indexBlock
	prev  int    // offset of the previous entry
	gap   int    // offset of the entry after a gap, or -1
	below uint64 // start of that gap in the file
	loose bool   // the previous entry is skipped, so a gap follows
}

// checkIndex checks the index block h; part is true for a partition.
func (r *Reader) checkIndex(b *cachedBlock, h blocks.Handle, part bool) {
	c := indexCheck{cachedBlock: b, gap: -1}
	if c.x.open(b.b, b.props) != nil {
		return // reported when the block is used
	}
	b.sorted = true
	var sep []byte // of the previous entry
	data, first, restart := part || b.props.IndexType != indexTwoLevel, true, 0
	ok, err := c.x.next()
	for ; ok; ok, err = c.x.next() {
		if c.x.at == c.x.RestartAt(restart) && c.x.Entries[c.x.at] == 0 {
			restart++
		}
		if data {
			if first {
				b.from = c.x.handle.Off
			}
			if first && part {
				b.to = b.from // see chain
			}
			c.entry()
		}
		b.sorted = b.sorted && (first || r.opts.Comparer.Compare(sep, c.x.sep()) <= 0)
		sep = append(sep[:0], c.x.sep()...)
		first, c.prev = false, c.x.at
	}
	switch {
	case err != nil:
		b.faults = append(b.faults, indexFault{h: h, err: err, late: true})
	case restart < c.x.NumRestarts() && len(c.x.Entries) > 0:
		b.faults = append(b.faults, indexFault{h: h, err: blocks.ErrRestart})
	}
}

// entry checks that the current block follows the previous one. After a wrong entry, the next one is in sequence again.
func (c *indexCheck) entry() {
	off := c.x.handle.Off
	switch {
	case touches(c.to, off), c.loose && off > c.to:
		c.loose = false
	case off > c.to:
		c.gap, c.below = c.x.at, c.to
		c.fault(off, errGap)
	case c.gap == c.prev && off >= c.below:
		c.skip = append(c.skip, c.prev)
		if n := len(c.faults); n < maxFaults {
			c.faults[n-1].h.Size, c.faults[n-1].err = off-c.below, errTwice
		}
	default:
		c.loose, c.skip = true, append(c.skip, c.x.at)
		c.fault(c.to, errTwice)
		return
	}
	c.to = handleEnd(c.x.handle)
}

// fault records that the bytes between the end of the last block and off are not read.
func (c *indexCheck) fault(off uint64, err error) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, indexFault{h: blocks.Handle{Off: c.to, Size: off - c.to}, sep: append([]byte{}, c.x.sep()...),
			err: err})
	}
}

// reportFaults reports the faults of an index block: the walk ends at the first one that pass does not accept.
func (x *tableIndex) reportFaults(faults []indexFault, b *indexBlock, place func(error) error) error {
	for _, f := range faults {
		if x.pass == nil && f.sep == nil {
			return place(f.err)
		}
		err := x.r.Fail(int64(f.h.Off), "index", f.err)
		if x.pass == nil {
			return err
		}
		b.faulty = true
		if !f.late && !x.pass(f.h, f.sep, err) {
			return err
		}
	}
	return nil
}

// chain checks that the data blocks of a partition follow those of the previous partition.
func (x *tableIndex) chain(b *cachedBlock) error {
	known, tail := x.linked, x.tail
	x.linked, x.tail = b.to > 0, b.to
	if !known || b.to == 0 || touches(tail, b.from) {
		return nil
	}
	f := indexFault{h: blocks.Handle{Off: tail}, sep: x.top.sep(), err: errGap}
	if b.from < tail {
		f.err = errTwice
	}
	return x.reportFaults([]indexFault{f}, &x.part, x.partDamage)
}

// skips reports whether the current entry points to a wrong block.
func (x *tableIndex) skips() bool {
	b, at := x.topBlock, x.top.at
	if x.two {
		b, at = x.partBlock, x.part.at
	}
	if b == nil || len(b.skip) == 0 {
		return false
	}
	_, found := slices.BinarySearch(b.skip, at)
	return found
}

// topDamage places an error in the table's index or its top level.
func (x *tableIndex) topDamage(err error) error {
	if err == nil {
		return nil
	}
	return x.r.Fail(int64(x.r.info.Index.Off), "index", err)
}

// partDamage places an error in the current partition.
func (x *tableIndex) partDamage(err error) error {
	if err == nil {
		return nil
	}
	return x.r.Fail(int64(x.top.handle.Off), fieldPartition, err)
}
