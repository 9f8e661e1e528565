package sst

import (
	"container/list"
	"math"
	"sync"

	"kvferry/store/rocks/blocks"
)

// Cache keeps index blocks: those in use, and idle ones while the total fits Max bytes. A table's cursors share it.
type Cache struct {
	mu   sync.Mutex
	Max  int64
	size int64
	used int       // users of all blocks
	idle list.List // of *cachedBlock, longest idle first
}

// InUse returns the number of cached bytes and of users.
func (c *Cache) InUse() (bytes int64, users int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size, c.used
}

// cachedBlock is an index block. The cache's mutex guards its fields; the bytes of b never change.
type cachedBlock struct {
	r     *Reader
	off   uint64
	b     []byte
	props *Properties // by which to read its entries
	// The range of the data blocks that its entries point to, if any, and its first faults.
	from, to uint64
	faults   []indexFault
	skip     []int // offsets of entries that point to a wrong block
	sorted   bool  // its separators are in order
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

// useMended is useIndex, unless the index is damaged and a salvage replaced it.
func (r *Reader) useMended() (*cachedBlock, error) {
	if _, err := r.Open(); err != nil {
		return nil, err
	}
	m := r.mend()
	if m == nil {
		return r.useIndex()
	}
	r.indexMu.Lock()
	defer r.indexMu.Unlock()
	if c := r.opts.Cache.use(r, mendedAt); c != nil {
		return c, nil
	}
	return r.cache(mendedAt, m.index, r.info.Index, false, &m.props), nil
}

// useBlock returns a block of the table's index; drop must follow.
func (r *Reader) useBlock(h blocks.Handle, field string) (*cachedBlock, error) {
	r.indexMu.Lock() // read a block only once
	defer r.indexMu.Unlock()
	if c := r.opts.Cache.use(r, h.Off); c != nil {
		return c, nil
	}
	b, err := r.readBlock(h, field, checkBlock)
	if err != nil {
		return nil, err
	}
	return r.cache(h.Off, b, h, field == fieldPartition, &r.info.Properties), nil
}

// mendedAt is the offset of an index that replaces a damaged one, which may be in the cache, too.
const mendedAt = math.MaxUint64

// cache checks the index block h and puts it into the cache. The caller holds the lock.
func (r *Reader) cache(off uint64, b []byte, h blocks.Handle, part bool, p *Properties) *cachedBlock {
	c := &cachedBlock{r: r, off: off, b: b, props: p, users: 1}
	r.checkIndex(c, h, part)
	r.opts.Cache.put(c)
	return c
}

// use adds a user to a cached block; nil if the block is not cached.
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

// put adds a block with one user.
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

// drop releases one use of the block.
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
