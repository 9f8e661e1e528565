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
	// maxBatchKeys limits the bytes of keys in a batch.
	maxBatchKeys = 32 << 10
	// firstBatchKeys limits them in the first batch, with which most lookups end.
	firstBatchKeys = 512
	// maxBatchRows limits the rows of a batch of several runs.
	maxBatchRows = 64
	// shortLen and chunkLen are the sizes in which keys are copied; excess bytes are overwritten by the next copy.
	shortLen = 16
	chunkLen = 48
)

// rowBatch holds the keys and origins of the last batch. Rows of one run, and their values, lie in one block.
type rowBatch struct {
	keys  []byte  // internal keys, copied
	c     *Cursor // cursor of the rows; nil: a single row, see Place
	first uint64  // sequence number of the first row
	rest  []byte  // the block after the first row

	merged bool    // rows come from several runs and blocks
	each   []rowAt // origins of merged rows

	// While the block is freed: sequence numbers of the rows, offset of rest in the block, length of the first value.
	seqs        []uint64
	after, size int

	placed, at int // rest[at:] begins with row placed+1
}

// start makes the current entry the first row of a batch.
func (b *rowBatch) start(c *Cursor) {
	b.room()
	b.c, b.first, b.rest, b.placed, b.at = c, c.Tr>>8, c.data[c.pos:], 0, 0
	b.seqs = b.seqs[:0]
	b.keys = append(b.keys[:0], c.buf[:c.ulen+base.TrailerLen]...)
}

// room allocates the key buffer, a small one for the first batch.
func (b *rowBatch) room() {
	switch {
	case b.keys == nil:
		b.keys = make([]byte, 0, firstBatchKeys)
	case cap(b.keys) < maxBatchKeys:
		b.keys = make([]byte, 0, maxBatchKeys)
	}
}

// run is the fast path for the rows after the current entry in its block. It stops before any entry that is not clearly
// a put of a larger key, and leaves that entry to Next.
func (c *Cursor) run(b *rowBatch, dst []store.Row) int {
	d, keys := c.data[c.pos:], b.keys[:cap(b.keys)]
	at, ulen := len(b.keys), c.ulen
	prev := 0 // start of the previous key
	// A key's prefix is copied from the key at from, which shares common bytes with the previous key and was written
	// earlier: reading bytes that were just stored in other widths is slower.
	from, common := 0, ulen
	n, start, values := 0, at, 0
	restart := len(c.data) - c.count.Restart // bytes left at the next restart point
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
		if end+vlen > len(d) || unshared <= base.TrailerLen || size > cap(keys)-at || shared >= ulen ||
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
		row := &dst[n] // set field by field: a composite literal would be copied
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

// standAt makes an entry the current one; the block continues at pos.
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

// copyChunk copies the first n bytes of src and, if both slices have room, the rest of a chunk.
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

// seq returns the sequence number of row i; it precedes the row's value.
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

// rowAt is the origin of a row in a batch of several runs. No cursor leaves its block while a batch is built.
type rowAt struct {
	c   *Cursor
	seq uint64
}

func (x *rowAt) place() record.Place {
	p := x.c.T.Place(x.c.handle.Off)
	p.Seq = x.seq
	return p
}
