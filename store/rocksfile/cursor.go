package rocksfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// sortedRun is a sequence of tables whose keys ascend from one to the next.
type sortedRun struct {
	tables []*table
	level  int // -1: logs
}

// cursor walks the entries of a sorted run that lie in [.., hi), checking their order. After next or
// seek returned true, the current entry is in the fields; its views live until the next move.
type cursor struct {
	ks       *keyspace
	tables   []*table
	hi       []byte
	bytewise bool

	// The current entry.
	buf  []byte // its internal key; longer than it
	ulen int    // length of its user key
	tr   uint64 // sequence number and kind
	val  []byte
	// lcp is how many bytes its user key shares with the entry before, known with the bytewise
	// order only; same says that the user keys are equal.
	lcp  int
	same bool

	// The current block.
	data     []byte
	pos      int
	block    blocks.Block
	handle   blocks.Handle
	checkHi  bool // the block may hold keys at or beyond hi
	useFixed bool
	fixed    uint64 // of an ingested table
	suffix   int    // bytes at the end of values that are not theirs

	t    *table
	ti   int                                               // of t in tables; before the first: -1
	walk blocks.Walk                                       // nil before the first table
	pass func(h blocks.Handle, sep []byte, err error) bool // for the walk; nil without a salvage
	swap []byte                                            // room for a key, with other orders than bytewise
	have bool                                              // an entry was read before
	done bool
	err  error
}

// newCursor starts before the first entry of tables in the order of a run.
func newCursor(ks *keyspace, tables []*table, hi []byte) *cursor {
	c := &cursor{ks: ks, tables: tables, hi: hi, bytewise: ks.cmp.IsBytewise(), ti: -1}
	if ks.env.salvage {
		c.pass = c.passes
	}
	return c
}

// between returns the tables of the run that may hold keys in [lo, hi).
func (r *sortedRun) between(cmp *store.Comparer, lo, hi []byte) []*table {
	from, to := 0, len(r.tables)
	if lo != nil {
		from, _ = slices.BinarySearchFunc(r.tables, lo, func(t *table, k []byte) int { return cmp.Compare(t.last, k) })
	}
	if hi != nil {
		to, _ = slices.BinarySearchFunc(r.tables, hi, func(t *table, k []byte) int { return cmp.Compare(t.first, k) })
	}
	return r.tables[from:max(from, to)]
}

// user returns the current user key.
func (c *cursor) user() []byte { return c.buf[:c.ulen:c.ulen] }

// place says where the current entry stands.
func (c *cursor) place() record.Place {
	var p record.Place
	if c.suffix > 0 {
		p = c.t.originPlace(c.val[:len(c.val)+c.suffix])
	} else {
		p = c.t.place(c.handle.Off)
	}
	p.Seq = c.tr >> 8
	return p
}

// close releases what the cursor holds.
func (c *cursor) close() {
	if c.walk != nil {
		c.walk.Close()
	}
	c.done, c.data, c.walk = true, nil, nil
}

// stop ends the walk, with an error when there is one.
func (c *cursor) stop(err error) bool {
	if c.err == nil {
		c.err = err
	}
	c.close()
	return false
}

// next moves to the next entry. False is the end, or an error in c.err.
func (c *cursor) next() bool {
	p, d := c.pos, c.data
	if p >= len(d) {
		return c.nextBlock()
	}
	var shared, unshared, vlen int
	if p+3 <= len(d) && (d[p]|d[p+1]|d[p+2]) < 0x80 {
		shared, unshared, vlen = int(d[p]), int(d[p+1]), int(d[p+2])
		p += 3
	} else if shared, unshared, vlen, p = blocks.EntryHeader(d, p); p < 0 {
		return c.damage(blocks.ErrEntry) || c.nextBlock()
	}
	end := p + unshared
	vend := end + vlen
	ulen := shared + unshared - base.TrailerLen
	if vend > len(d) || shared > c.ulen+base.TrailerLen || ulen < 0 || vlen < c.suffix {
		return c.damage(blocks.ErrEntry) || c.nextBlock()
	}
	if !c.bytewise {
		return c.nextOrdered(shared, p, end, vend)
	}
	// Both keys share at least shared bytes, and mostly no more.
	lcp, same := shared, false
	if m := min(c.ulen, ulen); shared >= m {
		lcp, same = m, c.ulen == ulen
		if c.ulen > ulen {
			return c.disorder(shared, d[p:end])
		}
	} else if a, b := c.buf[shared], d[p]; a >= b {
		if a > b {
			return c.disorder(shared, d[p:end])
		}
		lcp = shared + base.CommonPrefix(c.buf[shared:c.ulen], d[p:end-base.TrailerLen], 0)
		if same = lcp == m && c.ulen == ulen; !same && (lcp == ulen || lcp < m && c.buf[lcp] > d[p+lcp-shared]) {
			return c.disorder(shared, d[p:end])
		}
	}
	if n := ulen + base.TrailerLen; n > len(c.buf) {
		c.grow(n)
	}
	copy(c.buf[shared:], d[p:end])
	tr := binary.LittleEndian.Uint64(c.buf[ulen:])
	if c.useFixed {
		tr = base.Trailer(c.fixed, byte(tr))
	}
	if same && tr >= c.tr {
		return c.disorder(0, bytes.Clone(c.buf[:ulen+base.TrailerLen]))
	}
	c.lcp, c.same, c.ulen, c.tr = lcp, same, ulen, tr
	c.val = d[end : vend-c.suffix]
	c.pos = vend
	if c.checkHi && bytes.Compare(c.buf[:ulen], c.hi) >= 0 {
		return c.stop(nil)
	}
	return true
}

// grow makes room for keys of n bytes, keeping the current one.
func (c *cursor) grow(n int) {
	b := make([]byte, 2*n+32)
	copy(b, c.buf)
	c.buf = b
}

// nextOrdered finishes next for any order: the comparer decides.
func (c *cursor) nextOrdered(shared, p, end, vend int) bool {
	rest := c.data[p:end]
	n := shared + len(rest)
	if n > len(c.buf) {
		c.grow(n)
	}
	if n > len(c.swap) {
		c.swap = make([]byte, 2*n+32)
	}
	copy(c.swap, c.buf[:shared])
	copy(c.swap[shared:], rest)
	user, tr := base.SplitKey(c.swap[:n])
	if c.useFixed {
		tr = base.Trailer(c.fixed, byte(tr))
	}
	o := c.ks.cmp.Compare(c.user(), user)
	c.same = o == 0
	if o > 0 || c.same && tr >= c.tr {
		return c.disorder(shared, rest)
	}
	c.buf, c.swap = c.swap, c.buf
	c.ulen, c.tr, c.val, c.pos = len(user), tr, c.data[end:vend-c.suffix], vend
	if c.checkHi && c.ks.cmp.Compare(user, c.hi) >= 0 {
		return c.stop(nil)
	}
	return true
}

// disorder ends the walk with an OrderError about the entry after the current one.
func (c *cursor) disorder(shared int, rest []byte) bool {
	key := append(bytes.Clone(c.buf[:shared]), rest...)
	e := &store.OrderError{File: c.t.path, Off: int64(c.handle.Off), Keyspace: c.ks.name, Comparer: c.ks.cmp.Name,
		Prev: bytes.Clone(c.user()), Next: key[:max(len(key)-base.TrailerLen, 0)]}
	return c.stop(e)
}

// nextBlock moves to the first entry of the next block that has any.
func (c *cursor) nextBlock() bool {
	for !c.done {
		if c.t != nil {
			if !c.belowSeparator() {
				return c.stop(nil)
			}
			ok := false
			if !c.checkHi || !c.bytewise {
				// Bytewise separators are below the next block's keys; others may be mistaken. That of a
				// table's last block may be above the keys of the next table.
				var err error
				if ok, err = c.walk.Next(); err != nil {
					return c.stop(err)
				}
			}
			if ok {
				if c.loadBlock() && len(c.data) > 0 && c.first(0) {
					return c.aboveSmallest()
				}
				continue // unless that was the end
			}
			if !c.atEnd() {
				return false
			}
		}
		if !c.nextTable() {
			return false
		}
	}
	return false
}

// belowSeparator checks that the index told the truth about the block that ends here.
func (c *cursor) belowSeparator() bool {
	if !c.have || c.data == nil {
		return true
	}
	sep := c.walk.Separator()
	if c.ks.cmp.Compare(c.user(), sep) > 0 {
		return c.disorderAt("index", sep)
	}
	return true
}

// atEnd checks that the table that ends here kept to its bounds.
func (c *cursor) atEnd() bool {
	if c.have && c.data != nil && c.ks.cmp.Compare(c.user(), c.t.last) > 0 {
		return c.disorderAt("largest key of the MANIFEST", c.t.last)
	}
	return true
}

// aboveSmallest checks that a block's first key keeps to the bounds of its table.
func (c *cursor) aboveSmallest() bool {
	if c.ks.cmp.Compare(c.user(), c.t.first) < 0 {
		return c.disorderAt("smallest key of the MANIFEST", c.t.first)
	}
	return true
}

// disorderAt ends the walk because the current key lies beyond what something promised.
func (c *cursor) disorderAt(what string, promised []byte) bool {
	return c.stop(c.t.fail(int64(c.handle.Off), what,
		&store.OrderError{File: c.t.path, Off: int64(c.handle.Off), Keyspace: c.ks.name, Comparer: c.ks.cmp.Name,
			Prev: bytes.Clone(c.user()), Next: bytes.Clone(promised)}))
}

// nextTable moves before the first block of the next table.
func (c *cursor) nextTable() bool {
	c.ti++
	return c.openTable()
}

// openTable opens the table ti of the run, or the first one after it whose index can be read.
func (c *cursor) openTable() bool {
	for ; ; c.ti++ {
		if c.walk != nil {
			c.walk.Close()
		}
		if c.ti >= len(c.tables) {
			return c.stop(nil)
		}
		c.t, c.data, c.pos, c.checkHi = c.tables[c.ti], nil, 0, false
		if c.hi != nil && c.ks.cmp.Compare(c.t.first, c.hi) >= 0 {
			return c.stop(nil)
		}
		err := c.t.walk(&c.walk, c.pass)
		if err == nil {
			break
		}
		if !c.passes(c.t.indexHandle(), nil, err) {
			return c.stop(base.BlockError(err))
		}
	}
	c.useFixed, c.fixed, c.suffix = c.t.info.useFixed, c.t.info.fixedSeq, 0
	if c.t.origins != nil {
		c.suffix = originLen
	}
	return true
}

// loadBlock reads the block that the index stands at. False is an error in c.err, or a block that was passed over.
func (c *cursor) loadBlock() bool {
	c.handle = c.walk.Handle()
	c.checkHi = c.hi != nil && c.ks.cmp.Compare(c.walk.Separator(), c.hi) >= 0
	var err error
	if c.block, err = c.walk.Load(); err != nil {
		return c.damage(err)
	}
	c.data, c.pos = c.block.Entries, 0
	return true
}

// first reads the entry at p, a restart: its key stands there whole. False is as of loadBlock, or the end.
func (c *cursor) first(p int) bool {
	shared, unshared, vlen, q := blocks.EntryHeader(c.data, p)
	if q < 0 || shared != 0 || unshared < base.TrailerLen || vlen < c.suffix || unshared > len(c.data)-q || vlen > len(c.data)-q-unshared {
		return c.damage(fmt.Errorf("at %d of the block: %w", p, blocks.ErrEntry))
	}
	key, val := c.data[q:q+unshared], c.data[q+unshared:q+unshared+vlen]
	user, tr := base.SplitKey(key)
	if c.useFixed {
		tr = base.Trailer(c.fixed, byte(tr))
	}
	c.same = false
	if c.have {
		o := c.ks.cmp.Compare(c.user(), user)
		c.same = o == 0
		if o > 0 || c.same && tr >= c.tr {
			return c.disorder(0, key)
		}
	}
	c.lcp = base.CommonPrefix(c.buf[:c.ulen], user, 0)
	if len(key) > len(c.buf) {
		c.grow(len(key))
	}
	copy(c.buf, key)
	c.ulen, c.tr, c.val, c.have = len(user), tr, val[:vlen-c.suffix], true
	c.pos = q + unshared + vlen
	if c.checkHi && c.ks.cmp.Compare(user, c.hi) >= 0 {
		return c.stop(nil)
	}
	return true
}

// seek moves to the first entry at or after key, which is after the current one.
func (c *cursor) seek(key []byte) bool {
	if c.done {
		return false
	}
	if c.data != nil && c.ks.cmp.Compare(key, c.walk.Separator()) <= 0 {
		return c.seekBlock(key)
	}
	cmp := c.ks.cmp.Compare
	if c.t == nil || cmp(key, c.t.last) > 0 {
		from := c.ti + 1
		n, _ := slices.BinarySearchFunc(c.tables[from:], key, func(t *table, k []byte) int { return cmp(t.last, k) })
		if c.ti = from + n; !c.openTable() {
			return false
		}
	}
	ok, err := c.walk.Seek(key)
	if err != nil {
		return c.stop(err)
	}
	if !ok {
		c.data, c.pos = nil, 0
		return c.nextTable() && c.nextBlock() && c.scanTo(key)
	}
	if !c.loadBlock() || len(c.data) == 0 {
		return c.nextBlock() && c.scanTo(key)
	}
	return c.seekBlock(key)
}

// seekBlock moves to the first entry at or after key, which is in this block or the next. A salvage must not jump
// over an entry that ends the block for those who read it from its start.
func (c *cursor) seekBlock(key []byte) bool {
	p := 0
	if !c.salvages() {
		var err error
		if p, err = c.restartBefore(key); err != nil {
			return c.damage(err)
		}
	}
	if p >= c.pos || c.pos == 0 {
		if !c.first(p) {
			return c.nextBlock() && c.scanTo(key)
		}
	}
	return c.scanTo(key)
}

// restartBefore returns the last restart of the block whose key is before key, or the start.
func (c *cursor) restartBefore(key []byte) (int, error) {
	low, high := 0, c.block.NumRestarts()
	for low < high { // it is low-1
		mid := int(uint(low+high) / 2)
		k, err := c.keyAt(mid)
		if err != nil {
			return 0, err
		}
		if c.ks.cmp.Compare(k, key) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return 0, nil
	}
	return c.block.Restart(low - 1), nil
}

// keyAt returns the user key at a restart of the block.
func (c *cursor) keyAt(i int) ([]byte, error) {
	p := c.block.Restart(i)
	if p < 0 {
		return nil, blocks.ErrRestart
	}
	shared, unshared, _, q := blocks.EntryHeader(c.data, p)
	if q < 0 || shared != 0 || unshared < base.TrailerLen || unshared > len(c.data)-q {
		return nil, blocks.ErrEntry
	}
	return c.data[q : q+unshared-base.TrailerLen], nil
}

// scanTo goes on from the current entry until key is reached.
func (c *cursor) scanTo(key []byte) bool {
	for c.ks.cmp.Compare(c.user(), key) < 0 {
		if !c.next() {
			return false
		}
	}
	return true
}
