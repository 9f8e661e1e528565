package sst

import (
	"kvferry/store/rocks/blocks"
)

// keptIndex is an index block without faults, whose separators are in order: a walk of it that has not begun.
type keptIndex struct{ start indexBlock }

// Find returns the block that may hold a key; nil if no block does. It checks the block and the index once, and Hot keeps them
// for later calls. ok is false if only a walk can tell: blocks are not kept, or something is wrong with one.
func (r *Reader) Find(key []byte) (b *blocks.Kept, ok bool) {
	if r.opts.Hot == nil || r.opts.Salvage {
		return nil, false
	}
	x, ok := r.findIn(r.info.Index, "index", key)
	two := r.info.IndexType == indexTwoLevel
	if x != nil && two {
		x, ok = r.findIn(x.handle, fieldPartition, key)
	}
	if x == nil {
		return nil, ok
	}
	b = r.sortedBlock(x)
	if b == nil || r.opts.Comparer.Compare(x.sep(), key) > 0 {
		return b, b != nil
	}
	more, err := x.next() // the next block may have versions of the key, too, and newer ones in disorder
	if !more || err != nil {
		return b, err == nil && !two
	}
	next := r.sortedBlock(x)
	if next == nil {
		return nil, false
	}
	_, _, found := next.Get(key)
	return b, !found
}

// sortedBlock returns the block at an entry of the index; nil if it is not kept, or not sorted.
func (r *Reader) sortedBlock(x *indexBlock) *blocks.Kept {
	b := r.keptBlock(x.handle)
	if b == nil || !b.Sorted(x.sep()) {
		return nil
	}
	return b
}

// keptBlock returns a data block that Hot keeps; nil if it is too large to keep, or damaged.
func (r *Reader) keptBlock(h blocks.Handle) *blocks.Kept {
	hot := r.opts.Hot
	if b, ok := hot.Get(r, h.Off).(*blocks.Kept); ok {
		return b
	}
	if !hot.Wants(int(min(h.Size, 1<<30))) {
		return nil
	}
	data, err := r.dataBlock(h)
	if err != nil || !hot.Wants(len(data)) {
		return nil
	}
	b, err := blocks.Parse(data)
	if err != nil {
		return nil
	}
	kept := &blocks.Kept{Block: b}
	hot.Put(r, h.Off, kept, int64(cap(data)))
	return kept
}

// findIn moves to the entry of an index block that a key belongs to; nil after the last.
func (r *Reader) findIn(h blocks.Handle, field string, key []byte) (x *indexBlock, ok bool) {
	index, ok := r.opts.Hot.Get(r, h.Off).(*keptIndex)
	if !ok {
		if index = r.keepIndex(h, field); index == nil {
			return nil, false
		}
	}
	start := index.start
	x = &start
	found, err := x.seek(r.opts.Comparer.Compare, key)
	if err != nil || !found {
		return nil, err == nil
	}
	return x, true
}

// keepIndex checks an index block; nil if it has a fault.
func (r *Reader) keepIndex(h blocks.Handle, field string) *keptIndex {
	c, err := r.useBlock(h, field)
	if err != nil {
		return nil
	}
	defer c.drop()
	if len(c.faults) > 0 || len(c.skip) > 0 || !c.sorted {
		return nil
	}
	index := new(keptIndex)
	if index.start.open(c.b, c.props) != nil {
		return nil
	}
	r.opts.Hot.Put(r, h.Off, index, int64(cap(c.b)))
	return index
}
