package sst

import (
	"encoding/binary"
	"slices"

	"kvferry/internal/sys/bufpool"
	"kvferry/store/rocks/base"
)

// blockWriter builds blocks in place, back to back in one buffer:
//
//	+-----------------+-------------------+-----------------+------------+-------+
//	| shared (varint) | unshared (varint) | value (varint)  | key's rest | value |
//	+-----------------+-------------------+-----------------+------------+-------+
//	 …
//	+---------------------------+--------+
//	| restart offset (4B) × n   | n (4B) |
//	+---------------------------+--------+
//
// Little endian. A key shares a prefix with the previous key, except at a restart, every interval entries.
type blockWriter struct {
	buf      []byte
	start    int // of the block being built
	restarts []uint32
	interval int
	left     int // entries until the next restart
}

// row adds a row under its internal key, with a value of two parts. The first shared bytes of key equal those of the
// previous key.
func (b *blockWriter) row(shared int, key []byte, trailer uint64, value, suffix []byte) {
	if b.left == 0 {
		b.restart()
		shared = 0
	}
	b.left--
	p := b.room(maxLengths + len(key) - shared + base.TrailerLen + len(value) + len(suffix))
	b.buf = b.buf[:len(b.buf)+putRow(p, shared, key, trailer, value, suffix)]
}

// maxLengths bounds the bytes of an entry's three lengths.
const maxLengths = 3 * binary.MaxVarintLen32

// putRow encodes the entry of a row and returns its length.
func putRow(p []byte, shared int, key []byte, trailer uint64, value, suffix []byte) int {
	rest := key[shared:]
	n := putLengths(p, shared, len(rest)+base.TrailerLen, len(value)+len(suffix))
	n += copy(p[n:], rest)
	binary.LittleEndian.PutUint64(p[n:], trailer)
	n += base.TrailerLen
	n += copy(p[n:], value)
	if len(suffix) > 0 {
		n += copy(p[n:], suffix)
	}
	return n
}

// entry adds an entry with an unshared key. If withLength is false, the value implies its own length.
func (b *blockWriter) entry(key, value []byte, withLength bool) {
	b.restart()
	b.buf = append(b.buf, 0)
	b.buf = binary.AppendUvarint(b.buf, uint64(len(key)))
	if withLength {
		b.buf = binary.AppendUvarint(b.buf, uint64(len(value)))
	}
	b.buf = append(append(b.buf, key...), value...)
}

func (b *blockWriter) restart() {
	b.restarts = append(b.restarts, uint32(len(b.buf)-b.start))
	b.left = b.interval
}

// room returns the next n bytes of the buffer.
func (b *blockWriter) room(n int) []byte {
	b.buf = growExact(b.buf, n)
	return b.buf[len(b.buf) : len(b.buf)+n]
}

// putLengths encodes the header of an entry.
func putLengths(p []byte, shared, unshared, value int) int {
	if shared|unshared|value < 0x80 {
		p[0], p[1], p[2] = byte(shared), byte(unshared), byte(value)
		return 3
	}
	if shared|unshared < 0x80 && value < 1<<14 {
		p[0], p[1], p[2], p[3] = byte(shared), byte(unshared), byte(value)|0x80, byte(value>>7)
		return 4
	}
	n := binary.PutUvarint(p, uint64(shared))
	n += binary.PutUvarint(p[n:], uint64(unshared))
	return n + binary.PutUvarint(p[n:], uint64(value))
}

// size is the length of the block if it were finished now.
func (b *blockWriter) size() int { return len(b.buf) - b.start + 4*len(b.restarts) + 4 }

func (b *blockWriter) empty() bool { return len(b.buf) == b.start }

// finish ends the block and returns it; it is valid until reset.
func (b *blockWriter) finish() []byte {
	if len(b.restarts) == 0 {
		b.restart()
	}
	for _, r := range b.restarts {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, r)
	}
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(len(b.restarts)))
	block := b.buf[b.start:]
	b.start, b.restarts, b.left = len(b.buf), b.restarts[:0], 0
	return block
}

// reset drops all blocks, and the buffer if a large row grew it.
func (b *blockWriter) reset() {
	b.buf, b.start = bufpool.Reset(b.buf), 0
}

// growExact makes room for n more bytes; large buffers grow only to the needed size.
func growExact(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	if len(b)+n < bufpool.Large {
		return slices.Grow(b, n)
	}
	return append(make([]byte, 0, len(b)+n), b...)
}
