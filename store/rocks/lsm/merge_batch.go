package lsm

import (
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// alone reports whether the row is returned by itself: it is not a plain put from a table of a keyspace without range
// tombstones, or its large block is freed when another run takes its turn.
func (r *rows) alone() bool {
	return r.folded || r.cover != nil || r.m.top.suffix > 0 || byte(r.m.top.Tr) != base.KindPut ||
		r.m.single == nil && r.m.large()
}

// gather adds rows of all runs to dst, whose first row is the current entry, as long as each lies in its cursor's
// current block: only then do the earlier rows stay valid. It returns the total number of rows.
func (r *rows) gather(b *rowBatch, dst []store.Row) int {
	if b.each == nil {
		b.each = make([]rowAt, maxBatchRows)
	}
	b.room()
	at := r.storeEntry(b, dst, 0, 0)
	n, hidden := 1, int64(0)
	dst = dst[:min(len(dst), maxBatchRows)]
	for n < len(dst) {
		c := r.m.top
		if !c.more() {
			break
		}
		c.holds = true
		ok, err := r.m.next()
		c.holds = false
		if !ok {
			r.pending, r.late = true, err
			break
		}
		c = r.m.top
		if byte(c.Tr) != base.KindPut || c.suffix > 0 || r.m.large() || at+c.ulen > cap(b.keys) || r.m.same && r.watch != nil {
			r.pending = true
			break
		}
		if r.m.same {
			hidden++
			continue
		}
		r.supersede(hidden)
		hidden = 0
		r.n.Entries++
		r.n.Visible++
		at = r.storeEntry(b, dst, n, at)
		n++
	}
	r.passed, r.under = hidden, dst[n-1].Key
	return n
}

// more reports whether the block has another entry whose parts lie in it.
func (c *Cursor) more() bool {
	if c.pos >= len(c.data) {
		return false
	}
	shared, unshared, vlen, p := blocks.EntryHeader(c.data, c.pos)
	return p >= 0 && unshared+vlen <= len(c.data)-p && shared <= c.ulen+base.TrailerLen && shared+unshared >= base.TrailerLen
}

// storeEntry stores the current entry as row n of a batch whose keys end at at, and returns their new end.
func (r *rows) storeEntry(b *rowBatch, dst []store.Row, n, at int) int {
	c := r.m.top
	keys := b.keys[:cap(b.keys)]
	if c.ulen > len(keys)-at { // the first of a batch
		keys = make([]byte, c.ulen)
	}
	copyChunk(keys[at:], c.buf, c.ulen)
	end := at + c.ulen
	row := &dst[n]
	row.Key, row.Value = keys[at:end:end], c.Val
	x := &b.each[n]
	x.c, x.seq = c, c.Tr>>8
	return end
}

// NextBatch returns rows of one block as long as only ordinary puts follow each other; with several runs, rows of one
// block of each.
func (r *rows) NextBatch(dst []store.Row) (int, error) {
	b := &r.batch
	b.c, b.merged, b.rest = nil, false, nil
	if r.m.large() {
		clear(dst) // drop the last batch before the next block is read
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

// PlaceAt returns the place of row i of the last batch.
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
