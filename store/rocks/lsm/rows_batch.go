package lsm

import (
	"bytes"
	"encoding/binary"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

const (
	// maxBatchKeys is how many bytes of keys make a batch long enough.
	maxBatchKeys = 32 << 10
	// maxBatchRows is how many rows a batch of several runs has at most.
	maxBatchRows = 64
	// shortLen and chunkLen are how many bytes of a key are copied at once: what is too much is written over.
	shortLen = 16
	chunkLen = 48
)

// rowBatch is what rows of the last batch are made of. Those of one run lie in one block, where their values are.
type rowBatch struct {
	keys  []byte  // internal keys, copied
	c     *Cursor // whose rows they are; nil: a single row, see Place
	first uint64  // sequence number of the first row
	rest  []byte  // of the block, after the first row

	merged bool    // they are of several runs, and lie in several blocks
	each   []rowAt // where those come from

	// While the block is given back: the rows' sequence numbers, where rest begins in it, and how long the value before it is.
	seqs        []uint64
	after, size int

	placed, at int // rest[at:] begins with row placed+1
}

// NextBatch returns rows as long as they lie in one block, with nothing but ordinary puts in between; where runs are merged,
// in one block of each.
func (r *rows) NextBatch(dst []store.Row) (int, error) {
	b := &r.batch
	b.c, b.merged, b.rest = nil, false, nil
	if r.m.large() {
		clear(dst) // the last batch, which would be held while the next one is read
	}
	key, value, err := r.Next()
	if err != nil {
		return 0, err
	}
	dst[0].Key, dst[0].Value = key, value
	c := r.m.top
	switch {
	case r.alone():
		return 1, nil
	case c != r.m.single:
		b.merged = true
		return r.gather(b, dst), nil
	case c.checkHi:
		return 1, nil
	}
	b.start(c)
	dst[0].Key = b.keys[:c.ulen:c.ulen]
	n := c.run(b, dst[1:])
	r.n.Entries += int64(n)
	r.n.Visible += int64(n)
	return 1 + n, nil
}

// start makes the current entry the first of a batch.
func (b *rowBatch) start(c *Cursor) {
	b.room()
	b.c, b.first, b.rest, b.placed, b.at = c, c.Tr>>8, c.data[c.pos:], 0, 0
	b.seqs = b.seqs[:0]
	b.keys = append(b.keys[:0], c.buf[:c.ulen+base.TrailerLen]...)
}

// room makes room for keys.
func (b *rowBatch) room() {
	if b.keys == nil {
		b.keys = make([]byte, 0, maxBatchKeys+2*chunkLen)
	}
}

// run adds the rows that follow the current entry in its block, the simple way: it stops before whatever
// is not plainly a put of a larger key, and leaves that to next.
func (c *Cursor) run(b *rowBatch, dst []store.Row) int {
	d, keys := c.data[c.pos:], b.keys[:cap(b.keys)]
	at, ulen := len(b.keys), c.ulen
	prev := 0 // where the key before starts
	// A key's first bytes are copied from the key at from, which shares common bytes with the one before: it was
	// written a while ago, and to load what is just being stored in other pieces takes longer.
	from, common := 0, ulen
	n, start, values := 0, at, 0
	restart := len(c.data) - c.count.Restart // of what is left where the next restart point is
	for n < len(dst) && len(d) >= 4 {
		h := binary.LittleEndian.Uint32(d)
		shared, unshared, vlen, q := int(h&0x7f), int(h>>8&0x7f), int(h>>16&0x7f), 3
		if h&0x808080 != 0 {
			if shared, unshared, vlen, q = blocks.EntryHeader(d, 0); q < 0 {
				break
			}
		}
		end := q + unshared
		size := shared + unshared
		if end+vlen > len(d) || unshared <= base.TrailerLen || size > maxBatchKeys-at || shared >= ulen ||
			d[end-base.TrailerLen] != base.KindPut {
			break
		}
		if c.bytewise && d[q] <= keys[prev+shared] && bytes.Compare(keys[prev+shared:prev+ulen], d[q:end-base.TrailerLen]) >= 0 {
			break
		}
		if shared > common {
			from = prev
		}
		common = shared
		copyChunk(keys[at:], keys[from:], shared)
		copyChunk(keys[at+shared:], d[q:], unshared)
		if !c.bytewise && c.ks.cmp.From(keys[prev:prev+ulen], keys[at:at+size-base.TrailerLen], shared) >= 0 {
			break
		}
		if len(d) == restart {
			c.count.AtRestart(&c.block)
			restart = len(c.data) - c.count.Restart
		}
		values += vlen
		prev, ulen = at, size-base.TrailerLen
		at += size
		row := &dst[n] // set field by field: a struct would be built elsewhere and copied
		row.Key, row.Value = keys[prev:prev+ulen:prev+ulen], d[end:end+vlen:end+vlen]
		n++
		d = d[end+vlen:]
	}
	b.keys = keys[:at]
	if n > 0 {
		c.count.Entries += int64(n)
		c.count.KeyBytes += int64(at - start)
		c.count.ValueBytes += int64(values)
		c.standAt(b.keys[prev:], dst[n-1].Value, len(c.data)-len(d))
	}
	return n
}

// standAt makes an entry the current one, after which the block goes on at pos.
func (c *Cursor) standAt(key, value []byte, pos int) {
	if len(key) > len(c.buf) {
		c.grow(len(key))
	}
	copy(c.buf, key)
	user, tr := base.SplitKey(key)
	if c.useFixed {
		tr = base.Trailer(c.fixed, base.KindPut)
	}
	c.Val, c.pos, c.ulen, c.Tr, c.same, c.lcp = value, pos, len(user), tr, false, 0
}

// copyChunk copies the first n bytes of src, which has them, and where both have room for it what follows, too.
func copyChunk(dst, src []byte, n int) {
	switch {
	case n <= shortLen && len(src) >= shortLen && len(dst) >= shortLen:
		chunk := [shortLen]byte(src)
		*(*[shortLen]byte)(dst) = chunk
	case n <= chunkLen && len(src) >= chunkLen && len(dst) >= chunkLen:
		chunk := [chunkLen]byte(src)
		*(*[chunkLen]byte)(dst) = chunk
	default:
		copy(dst[:n], src)
	}
}

// PlaceAt says where row i of the last batch stands.
func (r *rows) PlaceAt(i int) record.Place {
	b := &r.batch
	switch {
	case b.merged:
		return b.each[i].place()
	case b.c == nil:
		return r.Place()
	}
	p := b.c.T.Place(b.c.handle.Off)
	p.Seq = b.seq(i)
	return p
}

// seq returns the sequence number of row i, which stands before its value.
func (b *rowBatch) seq(i int) uint64 {
	switch {
	case i < len(b.seqs):
		return b.seqs[i]
	case i == 0:
		return b.first
	case b.c.useFixed:
		return b.c.fixed
	case i <= b.placed:
		b.placed, b.at = 0, 0
	}
	for {
		_, unshared, vlen, q := blocks.EntryHeader(b.rest, b.at)
		end := q + unshared
		b.placed, b.at = b.placed+1, end+vlen
		if b.placed == i {
			return binary.LittleEndian.Uint64(b.rest[end-base.TrailerLen:]) >> 8
		}
	}
}
