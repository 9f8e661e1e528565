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
//	+-----------+--------------+----------------+----------+-----+--------------+
//	| flags (4) | len(key) (4) | len(value) (4) | room (4) | key | value … room |
//	+-----------+--------------+----------------+----------+-----+--------------+
//
// When the blocks are full, changed rows are written to the store in key order, and the cache starts empty.
type recent struct {
	limit  int // bytes of blocks
	blocks [][]byte
	used   int // of the last block
	last   int // number of the last block in use
	slots  []slot
	rows   int      // slots in use
	dirty  []uint32 // places of changed rows, and of rows that were changed
	seed   maphash.Seed
}

const (
	recentBlock = 1 << 20
	recentHead  = 16
	// recentRow is the largest row to cache; larger rows are only in the store.
	recentRow = 64 << 10
	// recentBeside is the memory of a row outside the blocks: its slots, its place in dirty, and the sort of
	// dirty.
	recentBeside = 3*8 + 4 + 16
	// recentSlots is the initial number of slots. At most three quarters are in use.
	recentSlots = 1 << 10
)

// Flags of rows.
const (
	rowGone   = 1 << iota // the row does not exist
	rowDirty              // the store does not have this version
	rowStored             // the store may have another one, or this one
	rowDead               // the row was moved, or is only in the store
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

func (r row) flags() uint32 { return binary.LittleEndian.Uint32(r) }
func (r row) mark(f uint32) { binary.LittleEndian.PutUint32(r, f) }
func (r row) keyLen() int   { return int(binary.LittleEndian.Uint32(r[4:])) }
func (r row) valueLen() int { return int(binary.LittleEndian.Uint32(r[8:])) }
func (r row) room() int     { return int(binary.LittleEndian.Uint32(r[12:])) }
func (r row) key() []byte   { return r[recentHead : recentHead+r.keyLen()] }
func (r row) value() []byte { return r[recentHead+r.keyLen():][:r.valueLen():r.valueLen()] }
func (r row) put(value []byte) {
	binary.LittleEndian.PutUint32(r[8:], uint32(len(value)))
	copy(r[recentHead+r.keyLen():], value)
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
	if s := c.slot(key, c.hashOf(key)); s.place != 0 && c.at(s.place).flags()&rowDead == 0 {
		return c.at(s.place)
	}
	return nil
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
	if to.place != 0 {
		r := c.at(to.place)
		was := r.flags()
		flags = flags&^rowStored | was&rowStored
		if len(value) <= r.room() {
			r.put(value)
			r.mark(flags | was&rowDirty)
			if flags&rowDirty > was&rowDirty {
				c.dirty = append(c.dirty, to.place)
			}
			return true
		}
		flags |= was & rowDirty
		room = min(2*room, recentRow-recentHead-len(key)) // it may grow again
	}
	place := c.make(len(key), room)
	if place == 0 {
		return false
	}
	if to.place == 0 {
		if c.rows++; 4*c.rows > 3*len(c.slots) {
			c.grow()
			to = c.slot(key, hash)
		}
	} else {
		c.at(to.place).mark(rowDead)
	}
	*to = slot{hash, place}
	r := c.at(place)
	r.mark(flags)
	binary.LittleEndian.PutUint32(r[4:], uint32(len(key)))
	copy(r[recentHead:], key)
	r.put(value)
	if flags&rowDirty != 0 {
		c.dirty = append(c.dirty, place)
	}
	return true
}

// make allocates a row and records the room for its value; 0 means that the cache is full. One row always
// fits.
func (c *recent) make(key, value int) uint32 {
	n := (recentHead + key + value + 7) &^ 7
	last, used := c.last, c.used
	if used+n > recentBlock {
		last, used = last+1, 0
	}
	if c.rows > 0 && last*recentBlock+used+n+c.rows*recentBeside > c.limit {
		return 0
	}
	if c.last, c.used = last, used+n; last == len(c.blocks) {
		c.blocks = append(c.blocks, make([]byte, recentBlock))
	}
	binary.LittleEndian.PutUint32(c.blocks[last][used+12:], uint32(n-recentHead-key))
	return uint32((last*recentBlock+used)/8) + 1
}

// grow doubles the slots.
func (c *recent) grow() {
	old := c.slots
	c.slots = make([]slot, 2*len(old))
	mask := uint32(len(c.slots) - 1)
	for _, s := range old {
		if s.place == 0 {
			continue
		}
		i := s.hash & mask
		for c.slots[i].place != 0 {
			i = (i + 1) & mask
		}
		c.slots[i] = s
	}
}

// clear forgets all rows.
func (c *recent) clear() {
	clear(c.slots)
	c.rows, c.used, c.last, c.dirty = 0, 0, 0, c.dirty[:0]
}

// changed lists the places of the changed rows in key order, and marks them as written. The places are valid
// until the next row is put.
func (c *recent) changed() []uint32 {
	type sorted struct {
		first uint64 // bytes of the key after its kind: the id, mostly
		place uint32
		kind  byte
	}
	all := make([]sorted, 0, len(c.dirty))
	for _, place := range c.dirty {
		r := c.at(place)
		f := r.flags()
		if f&rowDirty == 0 { // it moved, or is listed twice
			continue
		}
		if r.mark(f&^rowDirty | rowStored); f&(rowGone|rowStored) != rowGone {
			key := r.key()
			all = append(all, sorted{firstBytes(key[1:]), place, key[0]})
		}
	}
	slices.SortFunc(all, func(a, b sorted) int {
		if c := cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.first, b.first)); c != 0 {
			return c
		}
		return bytes.Compare(c.at(a.place).key(), c.at(b.place).key())
	})
	out := c.dirty[:0]
	for i := range all {
		out = append(out, all[i].place)
	}
	c.dirty = c.dirty[:0]
	return out
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
