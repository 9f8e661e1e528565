package lsm

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

// Run is a sorted run: tables whose keys ascend from one table to the next.
type Run struct {
	Tables []*Table
}

// Cursor iterates over the entries of a sorted run below hi and checks their order. After Next or Seek returned true,
// the fields describe the current entry; views are valid until the next move.
type Cursor struct {
	ks     *Keyspace
	tables []*Table
	hi     []byte

	bytewise, Strict bool // Strict: damage ends the walk, in a salvage, too

	// The current entry.
	buf  []byte // its internal key; the buffer is longer
	ulen int    // length of its user key
	Tr   uint64 // sequence number and kind
	Val  []byte
	// lcp is the length of the prefix that its user key shares with the previous one, set in bytewise order only; same
	// is true if the user keys are equal.
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
	suffix   int    // bytes appended to each value: a spool's origin
	counting bool   // the block is read from its start and still uncounted
	count    blocks.Counter
	released released
	late     error // from counting the freed block

	T    *Table
	ti   int                                               // index of T in tables; -1 before the first
	walk blocks.Walk                                       // nil before the first table
	pass func(h blocks.Handle, sep []byte, err error) bool // for the walk; nil without a salvage
	swap []byte                                            // buffer for a key, unless the order is bytewise
	sep  []byte                                            // separator of the previous block, if chained
	// chained is set if the block follows the previous one in a table index whose separators are in order.
	chained bool
	have    bool // at least one entry was read
	// holds keeps the block in use when the walk ends.
	holds bool
	Done  bool
	Err   error
}

// NewCursor returns a cursor before the first entry of tables, which are in run order.
func NewCursor(ks *Keyspace, tables []*Table, hi []byte) *Cursor {
	c := &Cursor{ks: ks, tables: tables, hi: hi, bytewise: ks.cmp.IsBytewise(), ti: -1}
	if ks.Env.Salvage {
		c.pass = c.passes
	}
	return c
}

// Between returns the tables of the run that may hold keys in [lo, hi).
func (r *Run) Between(cmp *store.Comparer, lo, hi []byte) []*Table {
	from, to := 0, len(r.Tables)
	if lo != nil {
		from, _ = slices.BinarySearchFunc(r.Tables, lo, func(t *Table, k []byte) int { return cmp.Compare(t.Last, k) })
	}
	if hi != nil {
		to, _ = slices.BinarySearchFunc(r.Tables, hi, func(t *Table, k []byte) int { return cmp.Compare(t.First, k) })
	}
	return r.Tables[from:max(from, to)]
}

// User returns the current user key.
func (c *Cursor) User() []byte { return c.buf[:c.ulen:c.ulen] }

// At reports whether the current entry has the user key.
func (c *Cursor) At(key []byte) bool { return c.have && !c.Done && bytes.Equal(c.User(), key) }

// Place returns the place of the current entry.
func (c *Cursor) Place() record.Place {
	var p record.Place
	if c.suffix > 0 {
		p = c.T.originPlace(c.Val[:len(c.Val)+c.suffix])
	} else {
		p = c.T.Place(c.handle.Off)
	}
	p.Seq = c.Tr >> 8
	return p
}

// Close releases the walk and the current block.
func (c *Cursor) Close() {
	if c.walk != nil {
		c.walk.Close()
	}
	c.Done, c.data, c.walk = true, nil, nil
	if c.suffix == 0 {
		c.forget()
	}
}

// stop ends the walk, with err unless it is nil.
func (c *Cursor) stop(err error) bool {
	if err == nil {
		err = c.leave()
	}
	if c.Err == nil {
		c.Err = err
	}
	c.Done = true
	if !c.holds {
		c.Close()
	}
	return false
}

// Next moves to the next entry. False is the end, or an error in c.Err.
func (c *Cursor) Next() bool {
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
	// Both keys share at least shared bytes, and rarely more.
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
	if same && tr >= c.Tr {
		return c.disorder(0, bytes.Clone(c.buf[:ulen+base.TrailerLen]))
	}
	c.lcp, c.same, c.ulen, c.Tr = lcp, same, ulen, tr
	c.Val = d[end : vend-c.suffix]
	c.note(ulen+base.TrailerLen, vend-end, vend)
	if c.checkHi && bytes.Compare(c.buf[:ulen], c.hi) >= 0 {
		return c.beyond()
	}
	return true
}

// grow enlarges the key buffer for keys of n bytes and keeps the current key.
func (c *Cursor) grow(n int) {
	b := make([]byte, 2*n+32)
	copy(b, c.buf)
	c.buf = b
}

// nextOrdered finishes Next, and first, in any order: the comparer decides.
func (c *Cursor) nextOrdered(shared, p, end, vend int) bool {
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
	o := -1
	if c.have {
		o = c.ks.cmp.From(c.User(), user, min(shared, c.ulen, len(user)))
	}
	c.same, c.have = o == 0, true
	if o > 0 || c.same && tr >= c.Tr {
		return c.disorder(shared, rest)
	}
	c.buf, c.swap = c.swap, c.buf
	c.ulen, c.Tr, c.Val = len(user), tr, c.data[end:vend-c.suffix]
	c.note(n, vend-end, vend)
	if c.checkHi && c.ks.cmp.Compare(user, c.hi) >= 0 {
		return c.beyond()
	}
	return true
}

// beyond ends the walk at the first key at or beyond hi. A misplaced key beyond hi would hide the keys below hi that
// follow it, so the order is checked to the end of the block and of its separator and the next one.
func (c *Cursor) beyond() bool {
	c.checkHi = false
	for c.pos < len(c.data) {
		if !c.Next() {
			return false
		}
	}
	if !c.belowSeparator() {
		return false
	}
	if err := c.leave(); err != nil {
		return c.stop(err)
	}
	// An unreadable rest of the index is the finding of whoever reads the blocks there.
	if ok, err := c.walk.Next(); err == nil && ok && c.ks.cmp.Compare(c.User(), c.walk.Separator()) > 0 {
		return c.disorderAt("index", c.walk.Separator())
	}
	return c.stop(nil)
}

// disorder ends the walk with an OrderError about the entry after the current one.
func (c *Cursor) disorder(shared int, rest []byte) bool {
	key := append(bytes.Clone(c.buf[:shared]), rest...)
	e := &store.OrderError{File: c.T.Path, Off: int64(c.handle.Off), Keyspace: c.ks.name, Comparer: c.ks.cmp.Name,
		Prev: bytes.Clone(c.User()), Next: key[:max(len(key)-base.TrailerLen, 0)]}
	return c.stop(e)
}

// nextBlock moves to the first entry of the next block that has any.
func (c *Cursor) nextBlock() bool {
	for !c.Done {
		if c.T != nil {
			if !c.belowSeparator() {
				return c.stop(nil)
			}
			if err := c.leave(); err != nil {
				return c.stop(err)
			}
			ok, more := false, c.checkHi && c.bytewise
			if !more {
				c.keepSeparator()
				// Bytewise separators are below the next block's keys; separators of other orders may be wrong. The
				// last separator of a table may be above the next table's keys.
				var err error
				if ok, err = c.walk.Next(); err != nil {
					return c.stop(err)
				}
			}
			if ok {
				if c.loadBlock() && len(c.data) > 0 && c.first(0) {
					return c.behindSeparator() && c.aboveSmallest()
				}
				continue // unless that was the end
			}
			if !c.atEnd(!more) {
				return false
			}
		}
		if !c.nextTable() {
			return false
		}
	}
	return false
}

// nextTable moves to the start of the next table.
func (c *Cursor) nextTable() bool {
	c.ti++
	return c.openTable()
}

// openTable opens table ti of the run, or the first one after it with a readable index.
func (c *Cursor) openTable() bool {
	for ; ; c.ti++ {
		if c.walk != nil {
			c.walk.Close()
		}
		if c.ti >= len(c.tables) {
			return c.stop(nil)
		}
		c.T, c.data, c.pos, c.checkHi = c.tables[c.ti], nil, 0, false
		if c.hi != nil && c.ks.cmp.Compare(c.T.First, c.hi) >= 0 {
			return c.stop(nil)
		}
		err := c.T.walk(&c.walk, c.pass)
		if err == nil {
			break
		}
		if !c.passes(c.T.indexHandle(), nil, err) {
			return c.stop(base.BlockError(err))
		}
	}
	c.useFixed, c.fixed, c.suffix = c.T.info.UseFixed, c.T.info.FixedSeq, 0
	if c.T.origins != nil {
		c.suffix = originLen
	}
	return true
}

// loadBlock reads the current block of the walk. False is an error in c.Err, or a skipped block.
func (c *Cursor) loadBlock() bool {
	c.handle = c.walk.Handle()
	c.checkHi = c.hi != nil && c.ks.cmp.Compare(c.walk.Separator(), c.hi) >= 0
	c.released = released{}
	if c.large() {
		c.forget() // otherwise it stays in memory while the next one is read
	}
	var err error
	if c.block, err = c.walk.Load(); err != nil {
		return c.damage(err)
	}
	c.data, c.pos = c.block.Entries, 0
	c.counting = !c.walk.Counted()
	c.count.Start(&c.block)
	return true
}

// first reads the entry at p, a restart with an unshared key. False is as in loadBlock, or the end.
func (c *Cursor) first(p int) bool {
	shared, unshared, vlen, q := blocks.EntryHeader(c.data, p)
	if q < 0 || shared != 0 || unshared < base.TrailerLen || vlen < c.suffix || unshared > len(c.data)-q ||
		vlen > len(c.data)-q-unshared {
		return c.damage(fmt.Errorf("at %d of the block: %w", p, blocks.ErrEntry))
	}
	end := q + unshared
	lcp := base.CommonPrefix(c.buf[:c.ulen], c.data[q:end-base.TrailerLen], 0)
	c.pos = p
	ok := c.nextOrdered(0, q, end, end+vlen)
	c.lcp = lcp
	return ok
}
