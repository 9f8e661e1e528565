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
	// chunkLen is how many bytes of a key are copied at once, as most are shorter: what is too much is written over.
	chunkLen = 48
)

// rowBatch is what rows of the last batch are made of. They lie in one block, where their values are.
type rowBatch struct {
	keys []byte // internal keys, copied
	seqs []uint64
	c    *Cursor // whose rows they are; nil: a single row, see Place
}

// NextBatch returns rows of one sorted run as long as they lie in one block, with nothing but ordinary puts in
// between. Where runs are merged it returns one: the next is mostly of another run.
func (r *rows) NextBatch(dst []store.Row) (int, error) {
	b := &r.batch
	b.c = nil
	key, value, err := r.Next()
	if err != nil {
		return 0, err
	}
	dst[0].Key, dst[0].Value = key, value
	c := r.m.top
	if r.folded || r.cover != nil || c != r.m.single || c.checkHi || c.suffix > 0 {
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
	if b.keys == nil {
		b.keys = make([]byte, 0, maxBatchKeys+chunkLen)
	}
	b.c = c
	b.keys = append(b.keys[:0], c.buf[:c.ulen+base.TrailerLen]...)
	b.seqs = append(b.seqs[:0], c.Tr>>8)
}

// run adds the rows that follow the current entry in its block, the simple way: it stops before whatever
// is not plainly a put of a larger key, and leaves that to next.
func (c *Cursor) run(b *rowBatch, dst []store.Row) int {
	d, p, ulen, tr := c.data, c.pos, c.ulen, c.Tr
	at, keys := len(b.keys), b.keys[:cap(b.keys)]
	prev := 0 // where the key before starts
	// A key's first bytes are copied from the key at from, which shares common bytes with the one before: it was
	// written a while ago, and to load what is just being stored in other pieces takes longer.
	from, common := 0, ulen
	n := 0
	for n < len(dst) && p+3 <= len(d) {
		shared, unshared, vlen, q := int(d[p]), int(d[p+1]), int(d[p+2]), p+3
		if d[p]|d[p+1]|d[p+2] >= 0x80 {
			if shared, unshared, vlen, q = blocks.EntryHeader(d, p); q < 0 {
				break
			}
		}
		end := q + unshared
		size := shared + unshared
		if end+vlen > len(d) || unshared < base.TrailerLen || size > maxBatchKeys-at ||
			shared >= ulen || shared >= size-base.TrailerLen || d[end-base.TrailerLen] != base.KindPut {
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
		tr = binary.LittleEndian.Uint64(d[end-base.TrailerLen:])
		if c.useFixed {
			tr = base.Trailer(c.fixed, base.KindPut)
		}
		prev, ulen = at, size-base.TrailerLen
		at += size
		b.seqs = append(b.seqs, tr>>8)
		row := &dst[n] // set field by field: a struct would be built elsewhere and copied
		row.Key, row.Value = keys[prev:prev+ulen:prev+ulen], d[end:end+vlen:end+vlen]
		n++
		p = end + vlen
	}
	b.keys = keys[:at]
	if n > 0 {
		last := b.keys[prev:]
		if len(last) > len(c.buf) {
			c.grow(len(last))
		}
		copy(c.buf, last)
		c.Val, c.pos, c.ulen, c.Tr, c.same, c.lcp = dst[n-1].Value, p, ulen, tr, false, 0
	}
	return n
}

// copyChunk copies the first n bytes of src, which has them, and where both have room for it what follows, too.
func copyChunk(dst, src []byte, n int) {
	if n <= chunkLen && len(src) >= chunkLen && len(dst) >= chunkLen {
		chunk := [chunkLen]byte(src)
		*(*[chunkLen]byte)(dst) = chunk
		return
	}
	copy(dst[:n], src)
}

// PlaceAt says where row i of the last batch stands.
func (r *rows) PlaceAt(i int) record.Place {
	c := r.batch.c
	if c == nil {
		return r.Place()
	}
	p := c.T.Place(c.handle.Off)
	p.Seq = r.batch.seqs[i]
	return p
}
