package rocksfile

import (
	"encoding/binary"

	"kvferry/record"
	"kvferry/store"
)

// maxBatchKeys is how many bytes of keys make a batch long enough.
const maxBatchKeys = 32 << 10

// rowBatch is what rows of the last batch are made of. They lie in one block, where their values are.
type rowBatch struct {
	keys []byte // internal keys, copied
	seqs []uint64
	c    *cursor // whose rows they are; nil: a single row, see Place
}

// NextBatch returns rows as long as they lie in one block, with nothing but ordinary puts in between.
func (r *rows) NextBatch(dst []store.Row) (int, error) {
	b := &r.batch
	b.release()
	key, value, err := r.Next()
	if err != nil {
		return 0, err
	}
	dst[0] = store.Row{Key: key, Value: value}
	c := r.m.top
	if len(dst) == 1 || r.folded || r.cover != nil || c.suffix > 0 {
		return 1, nil
	}
	b.hold(c)
	dst[0].Key = b.add(c)
	n := 1
	if c == r.m.single && c.bytewise {
		n += c.run(b, dst[1:])
	} else {
		n += r.merge(c, dst[1:])
	}
	r.n.Entries += int64(n - 1)
	r.n.Visible += int64(n - 1)
	return n, nil
}

// merge adds rows as long as they come from c.
func (r *rows) merge(c *cursor, dst []store.Row) int {
	b, n := &r.batch, 0
	for n < len(dst) && c.pos < len(c.data) && len(b.keys) < maxBatchKeys {
		ok, err := r.m.next()
		if !ok {
			r.pending, r.late = true, err
			break
		}
		if r.m.top != c || r.m.same || byte(c.tr) != kindPut {
			r.pending = true
			break
		}
		dst[n] = store.Row{Key: b.add(c), Value: c.val}
		n++
	}
	return n
}

// run adds the rows that follow the current entry in its block, the simple way: it stops before whatever
// is not plainly a put of a larger key, and leaves that to next.
func (c *cursor) run(b *rowBatch, dst []store.Row) int {
	if c.checkHi {
		return 0
	}
	d, p, ulen, tr := c.data, c.pos, c.ulen, c.tr
	keys, prev := b.keys, 0 // prev: where the key before starts
	n := 0
	for n < len(dst) && p+3 <= len(d) && (d[p]|d[p+1]|d[p+2]) < 0x80 {
		shared, unshared, vlen := int(d[p]), int(d[p+1]), int(d[p+2])
		q := p + 3
		end := q + unshared
		at, size := len(keys), shared+unshared
		if end+vlen > len(d) || unshared < trailerLen || size > cap(keys)-at ||
			shared >= ulen || shared >= size-trailerLen || d[q] <= keys[prev+shared] || d[end-trailerLen] != kindPut {
			break
		}
		keys = keys[:at+size]
		copy(keys[at:], keys[prev:prev+shared])
		copy(keys[at+shared:], d[q:end])
		tr = binary.LittleEndian.Uint64(d[end-trailerLen:])
		if c.useFixed {
			tr = trailer(c.fixed, kindPut)
		}
		prev, ulen = at, size-trailerLen
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
		c.val, c.pos, c.ulen, c.tr, c.same, c.lcp = dst[n-1].Value, p, ulen, tr, false, 0
	}
	b.keys = keys
	return n
}

// hold starts a batch of rows of c, which keeps its block until the batch is released, even at its end.
func (b *rowBatch) hold(c *cursor) {
	if cap(b.keys) < maxBatchKeys {
		b.keys = make([]byte, 0, maxBatchKeys)
	}
	b.keys, b.seqs, b.c = b.keys[:0], b.seqs[:0], c
	c.held = true
}

// add copies the key of the current entry.
func (b *rowBatch) add(c *cursor) []byte {
	at := len(b.keys)
	b.keys = append(b.keys, c.buf[:c.ulen+trailerLen]...)
	b.seqs = append(b.seqs, c.tr>>8)
	return b.keys[at : at+c.ulen : at+c.ulen]
}

// release ends a batch.
func (b *rowBatch) release() {
	if c := b.c; c != nil {
		b.c, c.held = nil, false
		if c.done {
			c.close()
		}
	}
}

// PlaceAt says where row i of the last batch stands.
func (r *rows) PlaceAt(i int) record.Place {
	c := r.batch.c
	if c == nil {
		return r.Place()
	}
	p := c.t.place(c.handle.off)
	p.Seq = r.batch.seqs[i]
	return p
}
