package rocksfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kvferry/record"
)

// A block holds entries whose keys share a prefix with the key before, but for those at restarts:
//
//	+-----------------+-------------------+-----------------+------------+-------+
//	| shared (varint) | unshared (varint) | value (varint)  | key's rest | value |
//	+-----------------+-------------------+-----------------+------------+-------+
//	 …
//	+---------------------------+-----------------+------------------------+
//	| restart offset (4B) × n   | hash index      | n, top bit: has a hash |
//	+---------------------------+-----------------+------------------------+
//
// Little endian. The hash index (data_block_index_type kDataBlockBinaryAndHash) is one byte per
// bucket and the number of buckets in 2 bytes; it is not used. Blocks above 64 KiB never have it.
type block struct {
	entries  []byte
	restarts []byte
}

// maxHashBlock is the size of the largest block that may have a hash index.
const maxHashBlock = 64 << 10

// parseBlock takes a block apart.
func parseBlock(b []byte) (block, error) {
	if len(b) < 4 {
		return block{}, fmt.Errorf("block of %d bytes: %w", len(b), record.ErrShort)
	}
	end := len(b) - 4
	n := binary.LittleEndian.Uint32(b[end:])
	if n>>31 != 0 && len(b) <= maxHashBlock {
		n &^= 1 << 31
		if end < 2 {
			return block{}, fmt.Errorf("hash index: %w", record.ErrShort)
		}
		end -= 2 + int(binary.LittleEndian.Uint16(b[end-2:]))
	}
	if end < 0 || uint64(n)*4 > uint64(end) {
		return block{}, fmt.Errorf("%d restarts in a block of %d bytes: %w", n, len(b), record.ErrShort)
	}
	start := end - 4*int(n)
	return block{entries: b[:start], restarts: b[start:end]}, nil
}

// restart returns the i-th restart offset, -1 when there is none or it lies outside of the entries.
func (b *block) restart(i int) int {
	if i >= b.numRestarts() {
		return -1
	}
	off := binary.LittleEndian.Uint32(b.restarts[4*i:])
	if uint64(off) >= uint64(len(b.entries)) {
		return -1
	}
	return int(off)
}

// numRestarts returns the number of restarts.
func (b *block) numRestarts() int { return len(b.restarts) / 4 }

var errEntry = errors.New("entry beyond the end of its block")

// entryHeader decodes the lengths of the entry at p and where its bytes start; next is -1 when
// they do not fit 32 bits each or end early.
func entryHeader(d []byte, p int) (shared, unshared, value, next int) {
	var v [3]int
	for i := range v {
		x, n := binary.Uvarint(d[p:])
		if n <= 0 || x > 1<<32-1 {
			return 0, 0, 0, -1
		}
		v[i] = int(x)
		p += n
	}
	return v[0], v[1], v[2], p
}

// blockEntries walks the entries of a block without judging their order. key and value are views
// that live until the next call.
type blockEntries struct {
	data []byte
	pos  int
	at   int // where the current entry starts
	key  []byte
	val  []byte
}

// next moves to the next entry; false without an error is the end.
func (e *blockEntries) next() (bool, error) {
	if e.pos >= len(e.data) {
		return false, nil
	}
	e.at = e.pos
	shared, unshared, value, p := entryHeader(e.data, e.pos)
	if p < 0 || unshared > len(e.data)-p || value > len(e.data)-p-unshared || shared > len(e.key) {
		return false, fmt.Errorf("at %d of the block: %w", e.pos, errEntry)
	}
	e.key = append(e.key[:shared], e.data[p:p+unshared]...)
	e.val = e.data[p+unshared : p+unshared+value]
	e.pos = p + unshared + value
	return true, nil
}
