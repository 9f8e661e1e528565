package keylanes

import (
	"kvferry/record"
	"kvferry/store"
)

// Bounds of the number of bytes of rows that a lane keeps when its iterator is closed, which is its share of
// the set's memory. The minimum makes up for the cost of opening an iterator; more than the maximum gains no
// speed.
const (
	minChunk      = 4 << 10
	maxChunk      = 64 << 10
	defaultMemory = 8 << 20
)

// chunkSize is the number of bytes that a closed lane may keep.
func chunkSize(memory int64, lanes int) int {
	return int(min(max(memory/int64(max(lanes, 1)), minChunk), maxChunk))
}

// chunk holds rows read ahead from a lane, so that its iterator can be closed. Its memory is reused.
type chunk struct {
	bytes []byte // keys and values, concatenated
	rows  []chunkRow
	at    int // the row under the cursor
}

// chunkRow is a row of a chunk. Its key starts at the end of the previous row.
type chunkRow struct {
	value, end int // offsets in bytes
	place      record.Place
}

// chunkRowSize is the approximate size of a chunkRow.
const chunkRowSize = 56

func (c *chunk) reset() { c.bytes, c.rows, c.at = c.bytes[:0], c.rows[:0], 0 }

// empty reports whether no row is left.
func (c *chunk) empty() bool { return c.at >= len(c.rows) }

// add copies a row; false if the chunk would grow beyond limit.
func (c *chunk) add(key, value []byte, place record.Place, limit int) bool {
	room := limit - len(c.bytes) - (len(c.rows)+1)*chunkRowSize
	if len(key) > room || len(value) > room-len(key) {
		return false
	}
	c.bytes = append(c.bytes, key...)
	mid := len(c.bytes)
	c.bytes = append(c.bytes, value...)
	c.rows = append(c.rows, chunkRow{value: mid, end: len(c.bytes), place: place})
	return true
}

// row returns the row under the cursor as views.
func (c *chunk) row() store.Row { return c.rowAt(c.at) }

func (c *chunk) rowAt(i int) store.Row {
	r, from := &c.rows[i], 0
	if i > 0 {
		from = c.rows[i-1].end
	}
	return store.Row{Key: c.bytes[from:r.value:r.value], Value: c.bytes[r.value:r.end:r.end]}
}

// views appends at most n rows, starting with the row under the cursor.
func (c *chunk) views(dst []store.Row, n int) []store.Row {
	for i := c.at; i < min(len(c.rows), c.at+n); i++ {
		dst = append(dst, c.rowAt(i))
	}
	return dst
}
