package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// recent caches the rows used last: most commands find all their rows here, and a row that changes often
// reaches the store once. A hash table maps keys to rows, which are appended to blocks of memory:
//
//	+----------------------------------------------------+-----+--------------+
//	| flags (7b) len(key) (17b) len(value) (17b) room (17b) | key | value … room |
//	+----------------------------------------------------+-----+--------------+
//
// When the blocks are full, the places of rows that moved are reclaimed. If there are few, changed rows are written to the
// store in key order, and the rows used since the last time stay, up to half of the cache.
type recent struct {
	limit  int // bytes of blocks
	blocks [][]byte
	used   []int // of each block
	last   int   // number of the last block in use
	slots  []slot
	rows   int      // slots in use
	dead   int      // bytes of rows that moved
	dirty  []uint32 // places of changed rows, and of rows that were changed
	runs   []int    // ends of the parts of dirty that are in key order
	moves  int      // how often places became invalid
	seed   maphash.Seed
}

const (
	recentBlock = 1 << 20
	recentHead  = 8
	// recentRow is the largest row to cache; larger rows are only in the store.
	recentRow = 64 << 10
	// recentPlace is the size of a place in dirty.
	recentPlace = 4
	// recentDirty is the memory of a changed row outside the blocks: its place, and the sort of dirty.
	recentDirty = recentPlace + 16
	// recentSlot is the size of a slot.
	recentSlot = 8
	// recentSlots is the initial number of slots. At most three quarters are in use.
	recentSlots = 1 << 6
)

// Flags of rows.
const (
	rowGone   = 1 << iota // the row does not exist
	rowDirty              // the store does not have this version
	rowStored             // the store may have another one, or this one
	rowDead               // the row was moved, or is only in the store
	rowTail               // the value goes behind the value in the store (strings.go)
	rowOnce               // 0 to 3 times rowOnce: it was used since it was put, and how often the cache was full since then
	rowUsed   = 3 * rowOnce
)

// Positions and width of the numbers in the head of a row.
const (
	headKey   = 7
	headValue = headKey + headBits
	headRoom  = headValue + headBits
	headBits  = 17
	headFlags = 1<<headKey - 1
)

func newRecent(limit int64) *recent {
	return &recent{limit: int(limit), slots: make([]slot, recentSlots), seed: maphash.MakeSeed()}
}

// slot refers to a row and caches its hash, so that probing touches no other rows.
type slot struct {
	hash  uint32
	place uint32 // of the row; 0: free
}

// row is a row in its place.
type row []byte

func (r row) head() uint64       { return binary.LittleEndian.Uint64(r) }
func (r row) length(at uint) int { return int(r.head() >> at & (1<<headBits - 1)) }
func (r row) flags() uint32      { return uint32(r.head() & headFlags) }
func (r row) keyLen() int        { return r.length(headKey) }
func (r row) valueLen() int      { return r.length(headValue) }
func (r row) room() int          { return r.length(headRoom) }
func (r row) size() int          { return recentHead + r.keyLen() + r.room() }
func (r row) key() []byte        { return r[recentHead : recentHead+r.keyLen()] }
func (r row) value() []byte      { return r[recentHead+r.keyLen():][:r.valueLen():r.valueLen()] }
func (r row) mark(f uint32)      { r.set(f, r.keyLen(), r.valueLen(), r.room()) }
func (r row) put(value []byte)   { copy(r[recentHead+r.keyLen():], value) }

// set writes the head of a row.
func (r row) set(flags uint32, key, value, room int) {
	binary.LittleEndian.PutUint64(r, uint64(flags)|uint64(key)<<headKey|uint64(value)<<headValue|uint64(room)<<headRoom)
}

// at returns the row of a place.
func (c *recent) at(place uint32) row {
	off := int(place-1) * 8
	return row(c.blocks[off/recentBlock][off%recentBlock:])
}

// slot returns the slot of a key: its row's, or the free one for it.
func (c *recent) slot(key []byte, hash uint32) *slot {
	mask := uint32(len(c.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &c.slots[i]
		if s.place == 0 || s.hash == hash && bytes.Equal(c.at(s.place).key(), key) {
			return s
		}
	}
}

func (c *recent) hashOf(key []byte) uint32 { return uint32(maphash.Bytes(c.seed, key)) }

// find returns the cached row of a key, or nil.
func (c *recent) find(key []byte) row {
	s := c.slot(key, c.hashOf(key))
	if s.place == 0 {
		return nil
	}
	r := c.at(s.place)
	switch f := r.flags(); {
	case f&rowDead != 0:
		return nil
	case f&rowUsed != rowUsed:
		r.mark(f | rowUsed)
	}
	return r
}

// forget drops a cached row that the store has replaced.
func (c *recent) forget(key []byte) {
	if r := c.find(key); r != nil {
		r.mark(rowDead | rowStored)
	}
}

// put caches a row with flags; rowStored applies only if the row is not cached yet. If the cache is full, put
// returns false and leaves the row unchanged.
func (c *recent) put(key, value []byte, flags uint32) bool {
	hash := c.hashOf(key)
	to := c.slot(key, hash)
	room := len(value)
	var old row
	if to.place != 0 {
		old = c.at(to.place)
		was := old.flags()
		flags = flags&^rowStored | was&(rowStored|rowDirty) | rowUsed
		if len(value) <= old.room() {
			old.put(value)
			old.set(flags, len(key), len(value), old.room())
			if flags&rowDirty > was&rowDirty {
				c.dirty = append(c.dirty, to.place)
			}
			return true
		}
		room = min(room+room/4, recentRow-recentHead-len(key)) // it may grow again
	}
	place, room := c.make(len(key), room)
	if place == 0 {
		return false
	}
	if old == nil {
		if c.rows++; 4*c.rows > 3*len(c.slots) {
			c.resize(2 * len(c.slots))
			to = c.slot(key, hash)
		}
	} else {
		old.mark(rowDead)
		c.dead += old.size()
	}
	*to = slot{hash, place}
	r := c.at(place)
	r.set(flags, len(key), len(value), room)
	copy(r[recentHead:], key)
	r.put(value)
	if flags&rowDirty != 0 {
		c.dirty = append(c.dirty, place)
	}
	return true
}

// patch writes a part of a row's value, which may become longer, and marks it as changed. It reports false and does nothing
// unless the row is cached with room for it.
func (c *recent) patch(key []byte, from int, part []byte) bool {
	r := c.find(key)
	if r == nil || r.flags()&rowGone != 0 || from > r.valueLen() || from+len(part) > r.room() {
		return false
	}
	if r.flags()&rowDirty == 0 {
		c.dirty = append(c.dirty, c.slot(key, c.hashOf(key)).place)
	}
	r.set(r.flags()|rowDirty, len(key), max(r.valueLen(), from+len(part)), r.room())
	copy(r.value()[from:], part)
	return true
}

// make allocates a row and returns the room for its value; place 0 means that the cache is full. One row always
// fits.
func (c *recent) make(key, value int) (place uint32, room int) {
	n := (recentHead + key + value + 7) &^ 7
	last, used := c.last, 0
	if len(c.blocks) > 0 {
		used = c.used[last]
	}
	if used+n > recentBlock {
		last, used = last+1, 0
	}
	if c.rows > 0 && last*recentBlock+used+n+len(c.dirty)*recentDirty+len(c.slots)*recentSlot > c.limit {
		return 0, 0
	}
	if last == len(c.blocks) {
		c.blocks, c.used = append(c.blocks, make([]byte, recentBlock)), append(c.used, 0)
	}
	c.last, c.used[last] = last, used+n
	return uint32((last*recentBlock+used)/8) + 1, n - recentHead - key
}

// resize changes the number of slots.
func (c *recent) resize(n int) {
	old := c.slots
	c.slots = make([]slot, n)
	for _, s := range old {
		if s.place != 0 {
			*c.free(s.hash) = s
		}
	}
}

// free returns a free slot for a hash.
func (c *recent) free(hash uint32) *slot {
	mask := uint32(len(c.slots) - 1)
	i := hash & mask
	for c.slots[i].place != 0 {
		i = (i + 1) & mask
	}
	return &c.slots[i]
}

// each calls f with all rows, in the order of their places.
func (c *recent) each(f func(r row)) {
	for i := 0; i <= c.last && i < len(c.blocks); i++ {
		for b := c.blocks[i][:c.used[i]]; len(b) > 0; b = b[row(b).size():] {
			f(b)
		}
	}
}

// keep moves the rows for which in returns true together, and forgets all others.
func (c *recent) keep(in func(r row) bool) {
	clear(c.slots)
	used, last := slices.Clone(c.used), c.last
	c.rows, c.dead, c.last, c.dirty, c.runs = 0, 0, 0, c.dirty[:0], nil
	c.moves++
	clear(c.used)
	for i := 0; i <= last && i < len(c.blocks); i++ {
		for b := c.blocks[i][:used[i]]; len(b) > 0; {
			r := row(b[:row(b).size()])
			b = b[len(r):]
			if r.flags()&rowDead != 0 || !in(r) {
				continue
			}
			if c.used[c.last]+len(r) > recentBlock {
				c.last++
			}
			at := c.used[c.last]
			c.used[c.last] += len(r)
			moved := row(c.blocks[c.last][at:])
			copy(moved, r)
			hash := c.hashOf(moved.key())
			place := uint32((c.last*recentBlock+at)/8) + 1
			*c.free(hash) = slot{hash, place}
			if c.rows++; moved.flags()&rowDirty != 0 {
				c.dirty = append(c.dirty, place)
			}
		}
	}
}

// age forgets the rows that were not used the last three times it was called and, while the rest takes more than half of the
// cache, those that were not used the longest. No row may be dirty.
func (c *recent) age() {
	var size [rowUsed/rowOnce + 1]int // of the rows, by use
	c.each(func(r row) {
		if f := r.flags(); f&rowDead == 0 {
			size[f&rowUsed/rowOnce] += r.size()
		}
	})
	least, over := uint32(1), size[1]+size[2]+size[3]+len(c.slots)*recentSlot-c.limit/2
	for ; least < 3 && over >= size[least]; least++ {
		over -= size[least]
	}
	c.keep(func(r row) bool {
		f := r.flags()
		use := f & rowUsed / rowOnce
		if use == least && over > 0 {
			over -= r.size()
			return false
		}
		r.mark(f - min(use, 1)*rowOnce)
		return use >= least && f&rowTail == 0 // a tail is in the store now
	})
}

// clear forgets all rows.
func (c *recent) clear() { c.keep(func(row) bool { return false }) }

// changed lists the places of the changed rows in key order, and marks them as written. The places are valid
// until the next row is put.
func (c *recent) changed() []uint32 {
	c.runs = nil
	c.order()
	out := c.dirty[:0]
	for _, place := range c.dirty {
		r := c.at(place)
		f := r.flags()
		if f&rowDirty == 0 { // it is listed twice
			continue
		}
		if r.mark(f&^rowDirty | rowStored); f&(rowGone|rowStored) != rowGone {
			out = append(out, place)
		}
	}
	c.dirty, c.runs = c.dirty[:0], nil
	c.moves++
	return out
}

// order puts the places of the rows that changed since its last call in key order. dirty then consists of runs, each more
// than four times as long as the next.
func (c *recent) order() {
	from := 0
	if n := len(c.runs); n > 0 {
		from = c.runs[n-1]
	}
	if from == len(c.dirty) {
		return
	}
	for n := len(c.runs); n > 0; n-- {
		begin := 0
		if n > 1 {
			begin = c.runs[n-2]
		}
		if from-begin > 4*(len(c.dirty)-from) {
			break
		}
		c.runs, from = c.runs[:n-1], begin
		c.moves++
	}
	rows := make([]sorted, 0, len(c.dirty)-from)
	for _, place := range c.dirty[from:] {
		if c.at(place).flags()&rowDirty != 0 { // it did not move
			rows = append(rows, sorted{place: place})
		}
	}
	c.sort(rows, 0)
	c.dirty = c.dirty[:from]
	for i := range rows {
		c.dirty = append(c.dirty, rows[i].place)
	}
	c.runs = append(c.runs, len(c.dirty))
}

// seal leaves only the rows, in key order, if they fit into a number of bytes.
func (c *recent) seal(bytes int64) bool {
	size := func() int64 {
		if c.rows == 0 {
			return 0
		}
		return int64(c.last*recentBlock + c.used[c.last] + len(c.dirty)*recentPlace)
	}
	if size()-int64(c.dead) > bytes {
		return false
	}
	if size() > bytes {
		c.keep(func(row) bool { return true })
	}
	c.runs = nil
	c.order()
	c.slots, c.blocks = nil, slices.Clip(c.blocks[:min(c.last+1, len(c.blocks))])
	return true
}

// sorted is a row to sort by a part of its key.
type sorted struct {
	part  uint64
	place uint32
}

// sort sorts rows by their keys, which are equal up to from. It compares the 8 bytes at which the keys begin to differ, so
// that it rarely looks at a row, then sorts those with equal bytes.
func (c *recent) sort(rows []sorted, from int) {
	if len(rows) < 2 {
		return
	}
	first := c.at(rows[0].place).key()
	same, least := len(first), len(first)
	for i := range rows {
		key := c.at(rows[i].place).key()
		least = min(least, len(key))
		for same = min(same, len(key)); from < same && string(key[from:same]) != string(first[from:same]); same-- {
		}
	}
	if from > least { // a key ended, which looked like one with zeros
		slices.SortFunc(rows, func(a, b sorted) int { return bytes.Compare(c.at(a.place).key(), c.at(b.place).key()) })
		return
	}
	for i := range rows {
		rows[i].part = firstBytes(c.at(rows[i].place).key()[same:])
	}
	sortParts(rows, 56)
	for begin, i := 0, 1; i <= len(rows); i++ {
		if i == len(rows) || rows[i].part != rows[begin].part {
			c.sort(rows[begin:i], same+8)
			begin = i
		}
	}
}

// sortParts sorts rows by the bytes of their parts from shift on: many by a byte at a time, in place.
func sortParts(rows []sorted, shift int) {
	if len(rows) < 128 || shift < 0 {
		slices.SortFunc(rows, func(a, b sorted) int { return cmp.Compare(a.part, b.part) })
		return
	}
	var next, end [256]int
	for _, r := range rows {
		end[byte(r.part>>shift)]++
	}
	at := 0
	for b := range end {
		next[b], at = at, at+end[b]
		end[b] = at
	}
	for b := range end {
		for next[b] < end[b] {
			to := byte(rows[next[b]].part >> shift)
			rows[next[b]], rows[next[to]] = rows[next[to]], rows[next[b]]
			next[to]++
		}
	}
	at = 0
	for b := range end {
		sortParts(rows[at:end[b]], shift-8)
		at = end[b]
	}
}

// firstBytes returns the first 8 bytes as a number with the same order.
func firstBytes(bytes []byte) uint64 {
	if len(bytes) >= 8 {
		return binary.BigEndian.Uint64(bytes)
	}
	var b [8]byte
	copy(b[:], bytes)
	return binary.BigEndian.Uint64(b[:])
}
