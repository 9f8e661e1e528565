package lsm

import (
	"fmt"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// A block made large by a large row is freed while its cursor waits for other cursors, of this or other keyspaces. Keys
// are copied, so that the cursor can still be compared; the block is read again when the cursor's turn comes.

// Tests change these.
var (
	// largeBlock is the minimum size of blocks that may be freed.
	largeBlock = bufpool.Large
	// maxKept is the size up to which values are copied when their block is freed.
	maxKept = 4 << 10
)

// released describes a freed block.
type released struct {
	size  int // bytes of its entries; 0: not freed
	at, n int // of the current value
}

// mayWait is the size up to which a waiting cursor keeps its block.
func (e *Env) mayWait() int { return max(int(e.Windows.Memory/16), largeBlock) }

// release frees the block if it is too large to wait.
func (c *Cursor) release() bool {
	if !c.large() || len(c.data) < c.ks.Env.mayWait() || c.suffix > 0 {
		return false
	}
	if err := c.leave(); err != nil {
		c.late = err
	}
	c.released = released{len(c.data), c.pos - len(c.Val), len(c.Val)}
	c.forget()
	c.walk.GiveBack()
	return true
}

// large reports whether the block may be freed.
func (c *Cursor) large() bool { return len(c.data) >= largeBlock }

// forget drops the views of the block.
func (c *Cursor) forget() { c.data, c.Val, c.block = nil, nil, blocks.Block{} }

// reload reads the block again.
func (c *Cursor) reload() error {
	was := c.released
	if was.size == 0 {
		return nil
	}
	if c.late != nil {
		c.stop(c.late)
		return c.Err
	}
	c.released = released{}
	b, err := c.walk.Load()
	if err == nil && len(b.Entries) != was.size {
		err = fmt.Errorf("it had %s bytes when it was read before and has %s", record.Number(was.size),
			record.Number(len(b.Entries)))
	}
	if err != nil {
		c.stop(base.BlockError(c.T.Fail(int64(c.handle.Off), "block", err)))
		return c.Err
	}
	c.block, c.data, c.Val = b, b.Entries, b.Entries[was.at:was.at+was.n]
	return nil
}

// Release implements store.Releaser.
func (r *rows) Release(batch []store.Row) int {
	c, n := r.m.top, len(batch)
	if c == nil || r.released || r.folded || n == 0 {
		return n
	}
	if r.pending { // the block holds the row after the batch
		r.released = c.release()
		return n
	}
	if byte(c.Tr) == base.KindBlobIndex {
		return r.releaseOutside(batch)
	}
	b := &r.batch
	size, first := len(batch[0].Value), len(b.rest)
	if r.m.large() { // it may be given back
		b.note(n)
	}
	if r.released = c.release(); !r.released {
		return n
	}
	b.size, b.after, b.rest = size, c.released.size-first, nil
	return b.keep(batch)
}

// releaseOutside frees a large blob value.
func (r *rows) releaseOutside(batch []store.Row) int {
	if len(batch) > 1 || len(batch[0].Value) < r.ks.Env.mayWait() {
		return len(batch)
	}
	batch[0].Value, r.released = nil, true
	r.outside.rd.GiveBack()
	return 0
}

// note saves the sequence numbers of n rows, which lie in the block.
func (b *rowBatch) note(n int) {
	b.seqs = b.seqs[:0]
	for i := 0; b.c != nil && i < n; i++ {
		b.seqs = append(b.seqs, b.seq(i))
	}
}

// keep copies small values and returns the index of the first large one.
func (b *rowBatch) keep(batch []store.Row) int {
	first, kept := len(batch), make([]byte, 0, maxKept)
	for i := range batch {
		v := batch[i].Value
		if len(v) > maxKept {
			batch[i].Value, first = nil, min(first, i)
			continue
		}
		at := len(kept)
		kept = append(kept, v...)
		batch[i].Value = kept[at:len(kept):len(kept)]
	}
	return first
}

// back loads the block again after Release.
func (r *rows) back() error {
	r.released = false
	c, b := r.m.top, &r.batch
	given := c.released.size > 0
	if err := c.reload(); err != nil {
		return r.end(err)
	}
	if given && b.c != nil {
		b.rest, b.seqs = c.data[b.after:], b.seqs[:0]
	}
	return nil
}

// Reload implements store.Releaser.
func (r *rows) Reload(batch []store.Row) error {
	if !r.released {
		return nil
	}
	if err := r.back(); err != nil {
		return err
	}
	c, b := r.m.top, &r.batch
	switch {
	case byte(c.Tr) == base.KindBlobIndex:
		v, err := r.outside.value(c)
		if err != nil {
			return r.end(err)
		}
		batch[0].Value = v
		return nil
	case b.c == nil:
		batch[0].Value = c.Val
		return nil
	}
	batch[0].Value = c.data[b.after-b.size : b.after : b.after]
	at := 0
	for i := range batch[1:] {
		_, unshared, vlen, q := blocks.EntryHeader(b.rest, at)
		end := q + unshared
		at = end + vlen
		batch[1+i].Value = b.rest[end:at:at]
	}
	return nil
}
