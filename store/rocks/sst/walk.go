package sst

import (
	"errors"

	"kvferry/record"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
)

// bigBlock is the size above which a buffer is not kept for small blocks.
const bigBlock = 512 << 10

// Walk iterates over the data blocks of a table.
type Walk struct {
	idx   tableIndex
	win   files.Window
	plain []byte // buffer for decompressed blocks
	block blocks.Block
	found bool // by Seek
}

var _ blocks.Walk = (*Walk)(nil)

// Walk starts before the first block. It reuses a finished walk, if given. pass reports whether the walk continues
// after an unreadable index partition, whose keys end at sep; nil ends the walk.
func (r *Reader) Walk(reuse blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) (blocks.Walk, error) {
	w, _ := reuse.(*Walk)
	if w == nil {
		w = &Walk{win: files.Window{All: r.opts.Windows}}
	}
	w.idx.pass = pass
	if err := w.idx.open(r); err != nil {
		w.idx.close()
		return w, err
	}
	w.win.Open(r.file)
	err := w.dropAccepted(blocks.Handle{}, r.begin())
	if m := r.mend(); err == nil && m != nil {
		err = w.dropAccepted(m.at, m.err)
	}
	if err != nil {
		w.Close()
	}
	return w, err
}

// Next moves to the next block.
func (w *Walk) Next() (bool, error) {
	w.found = false
	return w.idx.next()
}

// Seek moves to the first block that may hold keys at or after key.
func (w *Walk) Seek(key []byte) (bool, error) {
	w.found = true
	return w.idx.seek(key)
}

// SkipTo advances by at least one block, to the first that ends at or after off.
func (w *Walk) SkipTo(off uint64) (bool, error) { return w.idx.skipTo(off) }

// Separator returns an upper bound of the block's keys.
func (w *Walk) Separator() []byte { return w.idx.sep() }

// Handle returns the block's handle.
func (w *Walk) Handle() blocks.Handle { return w.idx.handle() }

// Partition returns the index partition that holds the block's entry; size 0 for a one-level index.
func (w *Walk) Partition() (h blocks.Handle, sep []byte) {
	if !w.idx.two {
		return blocks.Handle{}, nil
	}
	return w.idx.top.handle, w.idx.top.sep()
}

// Load reads, verifies and decompresses the block.
func (w *Walk) Load() (blocks.Block, error) {
	h := w.Handle()
	if w.found {
		if kept := w.idx.r.keptBlock(h); kept != nil {
			w.block = kept.Block
			return w.block, nil
		}
	}
	if cap(w.plain) > bigBlock && h.Size < bigBlock/16 {
		w.plain = nil // free the buffer of a single large row
	}
	b, plain, err := w.idx.r.loadBlock(&w.win, h, w.plain)
	w.plain = plain
	if err != nil {
		return blocks.Block{}, err
	}
	w.block, err = blocks.Parse(b)
	return w.block, err
}

// Counted reports whether the block was counted.
func (w *Walk) Counted() bool { return w.idx.r.audit.wasCounted(w.Handle()) }

// Count adds the counts of the block to the audit.
func (w *Walk) Count(n *blocks.Counts, err error) error {
	h := w.Handle()
	if n == nil {
		var c blocks.Counts
		c, err = w.block.Count()
		n = &c
		if err == blocks.ErrEmpty && w.idx.r.onlyTombstones(h) {
			err = nil
		}
	}
	if err == nil {
		err = w.idx.r.count(h, n)
	}
	return w.dropAccepted(h, err)
}

// dropAccepted drops an error of the audit if pass accepts it, because the rows are readable nevertheless. ErrEntry is dropped
// because the reader of the block finds it, too.
func (w *Walk) dropAccepted(h blocks.Handle, err error) error {
	if err == nil || w.idx.pass == nil {
		return err
	}
	if errors.Is(err, blocks.ErrEntry) {
		return nil
	}
	var c *record.CorruptError
	if !errors.As(err, &c) {
		err = w.idx.r.Fail(int64(h.Off), "block", err)
	}
	if w.idx.pass(h, nil, err) {
		return nil
	}
	return err
}

// GiveBack frees the memory of the block.
func (w *Walk) GiveBack() {
	w.win.GiveBack()
	w.plain, w.block = nil, blocks.Block{}
}

// Close releases the table. The walk may be reused.
func (w *Walk) Close() {
	w.idx.close()
	w.win.Close()
}

// KeyBefore returns the last readable separator of the index before sep, or nil.
func (r *Reader) KeyBefore(sep []byte) []byte {
	var x tableIndex
	defer x.close()
	x.pass = func(blocks.Handle, []byte, error) bool { return true } // the walk of the rows reports faults
	if x.open(r) != nil {
		return nil
	}
	compare := r.opts.Comparer.Compare
	low := x.top.before(compare, sep)
	if !x.two || x.openPart() != nil {
		return low
	}
	for { // stop at an invalid entry
		if ok, err := x.part.next(); !ok || err != nil || compare(x.part.sep(), sep) >= 0 {
			return low
		}
		low = append(low[:0], x.part.sep()...)
	}
}
