package sst

import (
	"errors"
	"slices"

	"kvferry/store/rocks/blocks"
)

// All engines write data blocks from the start of the file, one behind the other, and one entry of the index for each. So
// an index whose blocks leave a gap has lost an entry, whatever its checksum says, or names a block in place of another.
var (
	errGap     = errors.New("the index does not name the block that stands here")
	errNoBlock = errors.New("the index names no block, and no engine writes a table without rows")
	errTwice   = errors.New("the index names another block in place of the one that stands here")
)

// maxFaults is how many faults of an index block are kept.
const maxFaults = 16

// indexFault is something wrong with an entry of an index block.
type indexFault struct {
	h    blocks.Handle // where rows are missing; of another fault, the index block
	sep  []byte        // no missing key is after it; nil: no rows are missing
	err  error
	late bool // those who come to the entry find it out
}

// indexCheck looks through an index block that was just read, so that seeks can rely on its restart points and nobody
// needs to walk past a missing entry to know of it.
type indexCheck struct {
	*cachedBlock
	x     indexBlock
	prev  int    // where the entry before starts
	gap   int    // an entry that leaves a gap, -1 for none
	below uint64 // where the gap before it starts
	loose bool   // the entry before is skipped: a gap follows
}

// checkIndex checks the index block h; part says that it is a partition.
func (r *Reader) checkIndex(b *cachedBlock, h blocks.Handle, part bool) {
	c := indexCheck{cachedBlock: b, gap: -1}
	if c.x.open(b.b, &r.info.Properties) != nil {
		return // whoever uses the block says so
	}
	data, first, restart := part || r.info.IndexType != indexTwoLevel, true, 0
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
		first, c.prev = false, c.x.at
	}
	switch {
	case err != nil:
		b.faults = append(b.faults, indexFault{h: h, err: err, late: true})
	case restart < c.x.NumRestarts() && len(c.x.Entries) > 0:
		b.faults = append(b.faults, indexFault{h: h, err: blocks.ErrRestart})
	}
}

// entry checks that the block of the current entry follows the one before. Of an entry that leads elsewhere the one after
// leads back.
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

// fault notes that what stands between the end of the last block and off is not read.
func (c *indexCheck) fault(off uint64, err error) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, indexFault{h: blocks.Handle{Off: c.to, Size: off - c.to}, sep: append([]byte{}, c.x.sep()...), err: err})
	}
}

// judge tells of the faults of an index block: the walk ends with the first, unless it passes over it.
func (x *tableIndex) judge(faults []indexFault, b *indexBlock, place func(error) error) error {
	for _, f := range faults {
		if x.pass == nil && f.sep == nil {
			return place(f.err)
		}
		err := x.r.Fail(int64(f.h.Off), "index", f.err)
		if x.pass == nil {
			return err
		}
		if b.faulty = true; !f.late && !x.pass(f.h, f.sep, err) {
			return err
		}
	}
	return nil
}

// chain checks that the data blocks of a partition follow those of the one before.
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
	return x.judge([]indexFault{f}, &x.part, x.partDamage)
}

// skips reports whether the current entry leads to a block in place of another.
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

// topDamage places an error in the table's index, or its top level.
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
