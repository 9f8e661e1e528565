package sst

import (
	"errors"

	"kvferry/record"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
)

// bigBlock is the size of blocks whose room is not kept.
const bigBlock = 512 << 10

// Walk goes through the data blocks of a table.
type Walk struct {
	idx   tableIndex
	win   files.Window
	plain []byte // room for decompressed blocks
	block blocks.Block
}

var _ blocks.Walk = (*Walk)(nil)

// Walk starts before the first block, in the room of a walk that is over when there is one. pass is asked whether the
// walk continues after a partition of the index, whose keys end at sep, that cannot be read; nil: it does not.
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
	if err := w.told(blocks.Handle{}, r.begin()); err != nil {
		w.Close()
		return w, err
	}
	return w, nil
}

// Next moves to the next block.
func (w *Walk) Next() (bool, error) { return w.idx.next() }

// Seek moves to the first block that may hold keys at or after key.
func (w *Walk) Seek(key []byte) (bool, error) { return w.idx.seek(key) }

// SkipTo moves on by a block or more, to the first that ends at or after off.
func (w *Walk) SkipTo(off uint64) (bool, error) { return w.idx.skipTo(off) }

// Separator returns a key that no key of the block is after.
func (w *Walk) Separator() []byte { return w.idx.sep() }

// Handle says where the block is.
func (w *Walk) Handle() blocks.Handle { return w.idx.handle() }

// Partition says which partition of the index names the block; size 0 when the index has none.
func (w *Walk) Partition() (h blocks.Handle, sep []byte) {
	if !w.idx.two {
		return blocks.Handle{}, nil
	}
	return w.idx.top.handle, w.idx.top.sep()
}

// Load reads, verifies and unpacks the block.
func (w *Walk) Load() (blocks.Block, error) {
	h := w.Handle()
	if cap(w.plain) > bigBlock && h.Size < bigBlock/16 {
		w.plain = nil // do not keep the room of one large row for all that follow
	}
	b, plain, err := w.idx.r.loadBlock(&w.win, h, w.plain)
	if w.plain = plain; err != nil {
		return blocks.Block{}, err
	}
	w.block, err = blocks.Parse(b)
	return w.block, err
}

// Counted reports whether the block was counted.
func (w *Walk) Counted() bool { return w.idx.r.audit.known(w.Handle()) }

// Count takes what the block holds.
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
	return w.told(h, err)
}

// told passes over what the audit found if the walk does: rows can be read all the same. An entry that cannot be read ends
// the block for whoever comes to it.
func (w *Walk) told(h blocks.Handle, err error) error {
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

// GiveBack lets go of the memory of the block.
func (w *Walk) GiveBack() {
	w.win.GiveBack()
	w.plain, w.block = nil, blocks.Block{}
}

// Close lets go of the table. The walk may be reused.
func (w *Walk) Close() {
	w.idx.close()
	w.win.Close()
}

// KeyBefore returns the last separator of the index that is before sep, as far as it can be read; nil if there is none.
func (r *Reader) KeyBefore(sep []byte) []byte {
	var x tableIndex
	defer x.close()
	x.pass = func(blocks.Handle, []byte, error) bool { return true } // whoever walks tells of faults
	if x.open(r) != nil {
		return nil
	}
	compare := r.opts.Comparer.Compare
	low := x.top.before(compare, sep)
	if !x.two || x.openPart() != nil {
		return low
	}
	for { // not beyond an entry that is none
		if ok, err := x.part.next(); !ok || err != nil || compare(x.part.sep(), sep) >= 0 {
			return low
		}
		low = append(low[:0], x.part.sep()...)
	}
}
