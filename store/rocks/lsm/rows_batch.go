package lsm

import (
	"encoding/binary"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// maxBatchKeys is how many bytes of keys make a batch long enough.
const maxBatchKeys = 32 << 10

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
		b.keys = make([]byte, 0, maxBatchKeys)
	}
	b.c = c
	b.keys = append(b.keys[:0], c.buf[:c.ulen+base.TrailerLen]...)
	b.seqs = append(b.seqs[:0], c.Tr>>8)
}

// run adds the rows that follow the current entry in its block, the simple way: it stops before whatever
// is not plainly a put of a larger key, and leaves that to next.
func (c *Cursor) run(b *rowBatch, dst []store.Row) int {
	d, p, ulen, tr := c.data, c.pos, c.ulen, c.Tr
	keys, prev := b.keys, 0 // prev: where the key before starts
	n := 0
	for n < len(dst) && p+3 <= len(d) {
		shared, unshared, vlen, q := int(d[p]), int(d[p+1]), int(d[p+2]), p+3
		if d[p]|d[p+1]|d[p+2] >= 0x80 {
			if shared, unshared, vlen, q = blocks.EntryHeader(d, p); q < 0 {
				break
			}
		}
		end := q + unshared
		at, size := len(keys), shared+unshared
		if end+vlen > len(d) || unshared < base.TrailerLen || size > cap(keys)-at ||
			shared >= ulen || shared >= size-base.TrailerLen || c.bytewise && d[q] <= keys[prev+shared] || d[end-base.TrailerLen] != base.KindPut {
			break
		}
		keys = keys[:at+size]
		copy(keys[at:], keys[prev:prev+shared])
		copy(keys[at+shared:], d[q:end])
		if !c.bytewise && c.ks.cmp.Compare(keys[prev:prev+ulen], keys[at:at+size-base.TrailerLen]) >= 0 {
			keys = keys[:at]
			break
		}
		tr = binary.LittleEndian.Uint64(d[end-base.TrailerLen:])
		if c.useFixed {
			tr = base.Trailer(c.fixed, base.KindPut)
		}
		prev, ulen = at, size-base.TrailerLen
		b.seqs = append(b.seqs, tr>>8)
		row := &dst[n] // set field by field: a struct would be built elsewhere and copied
		row.Key, row.Value = keys[at:at+ulen:at+ulen], d[end:end+vlen:end+vlen]
		n++
		p = end + vlen
	}
	if n > 0 {
		last := keys[prev:]
		if len(last) > len(c.buf) {
			c.grow(len(last))
		}
		copy(c.buf, last)
		c.Val, c.pos, c.ulen, c.Tr, c.same, c.lcp = dst[n-1].Value, p, ulen, tr, false, 0
	}
	b.keys = keys
	return n
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
