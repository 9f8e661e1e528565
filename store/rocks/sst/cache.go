package sst

import (
	"container/list"
	"kvferry/store/rocks/blocks"
	"sync"
)

// Cache keeps the blocks of indexes that were read, as many as fit max bytes, and all those in use. All
// cursors of a table share them.
type Cache struct {
	mu   sync.Mutex
	Max  int64
	size int64
	used int       // blocks in use, counted once for each user
	idle list.List // of *cachedBlock, longest idle first
}

// InUse says how many bytes are kept, and how many users there are.
func (c *Cache) InUse() (bytes int64, users int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size, c.used
}

// cachedBlock is a block of a table's index. Its fields are guarded by the cache's mutex; b do not change.
type cachedBlock struct {
	r   *Reader
	off uint64
	b   []byte
	// What its entries lead to, if to data blocks, and the first of what is wrong with them.
	from, to uint64
	faults   []indexFault
	skip     []int // where entries start that lead to a block in place of another
	users    int
	elem     *list.Element // in the list of idle blocks
}

// useIndex returns the table's top index block; drop must follow.
func (r *Reader) useIndex() (*cachedBlock, error) {
	info, err := r.Open()
	if err != nil {
		return nil, err
	}
	return r.useBlock(info.Index, "index")
}

// useBlock returns a block of the table's index; drop must follow.
func (r *Reader) useBlock(h blocks.Handle, field string) (*cachedBlock, error) {
	r.indexMu.Lock() // a block is read once
	defer r.indexMu.Unlock()
	if c := r.opts.Cache.use(r, h.Off); c != nil {
		return c, nil
	}
	b, err := r.readBlock(h, field, checkBlock)
	if err != nil {
		return nil, err
	}
	c := &cachedBlock{r: r, off: h.Off, b: b, users: 1}
	r.checkIndex(c, h, field == fieldPartition)
	r.opts.Cache.put(c)
	return c, nil
}

// use counts a user of a block, when it is there.
func (c *Cache) use(r *Reader, off uint64) *cachedBlock {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := r.index[off]
	if b == nil {
		return nil
	}
	if b.elem != nil {
		c.idle.Remove(b.elem)
		b.elem = nil
	}
	b.users++
	c.used++
	return b
}

// put takes a block with one user.
func (c *Cache) put(b *cachedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.r.index == nil {
		b.r.index = make(map[uint64]*cachedBlock, 1)
	}
	b.r.index[b.off] = b
	c.size += int64(cap(b.b))
	c.used++
}

// drop ends a use of the block.
func (b *cachedBlock) drop() {
	c := b.r.opts.Cache
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used--
	if b.users--; b.users > 0 {
		return
	}
	b.elem = c.idle.PushBack(b)
	for c.size > c.Max && c.idle.Len() > 0 {
		e := c.idle.Remove(c.idle.Front()).(*cachedBlock)
		c.size -= int64(cap(e.b))
		delete(e.r.index, e.off)
	}
}
