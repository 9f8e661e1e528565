package blocks

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// Block is a parsed block.
type Block struct {
	Entries  []byte
	restarts []byte
}

// maxHashBlock is the size of the largest block with a hash index.
const maxHashBlock = 64 << 10

// Flag bits in the number of restarts, used by RocksDB 11. No block has 1<<28 restarts.
const (
	flagApart   = 1 << 28 // all keys come first, then all values
	flagUniform = 1 << 29 // keys are evenly distributed: a search hint
)

// Parse splits a block into entries and restarts.
func Parse(b []byte) (Block, error) {
	if len(b) < 4 {
		return Block{}, fmt.Errorf("block of %s bytes: %w", record.Number(len(b)), record.ErrShort)
	}
	end := len(b) - 4
	n := binary.LittleEndian.Uint32(b[end:])
	if n&flagApart != 0 {
		return Block{}, base.Unsupported("block with keys and values apart")
	}
	n &^= flagUniform
	if n>>31 != 0 && len(b) <= maxHashBlock {
		n &^= 1 << 31
		if end < 2 {
			return Block{}, fmt.Errorf("hash index: %w", record.ErrShort)
		}
		end -= 2 + int(binary.LittleEndian.Uint16(b[end-2:]))
	}
	if end < 0 || uint64(n)*4 > uint64(end) {
		return Block{}, fmt.Errorf("%s restarts in a block of %s bytes: %w", record.Number(n), record.Number(len(b)),
			record.ErrShort)
	}
	start := end - 4*int(n)
	return Block{Entries: b[:start], restarts: b[start:end]}, nil
}

// Restart returns the i-th restart offset, or -1 if it is missing or outside the entries.
func (b *Block) Restart(i int) int {
	if i >= b.NumRestarts() {
		return -1
	}
	off := binary.LittleEndian.Uint32(b.restarts[4*i:])
	if uint64(off) >= uint64(len(b.Entries)) {
		return -1
	}
	return int(off)
}

// RestartAt returns the i-th restart offset unchecked, or -1 after the last.
func (b *Block) RestartAt(i int) int {
	if i >= b.NumRestarts() {
		return -1
	}
	return int(binary.LittleEndian.Uint32(b.restarts[4*i:]))
}

// NumRestarts returns the number of restarts.
func (b *Block) NumRestarts() int { return len(b.restarts) / 4 }

// Errors of damaged blocks.
var (
	ErrEntry   = errors.New("entry beyond the end of its block")
	ErrRestart = errors.New("restart point is not at an entry")
)

// EntryHeader decodes the three lengths of the entry at p and the offset of its key; next is -1 if a length is
// truncated or exceeds 32 bits.
func EntryHeader(d []byte, p int) (shared, unshared, value, next int) {
	if p+4 <= len(d) && d[p]|d[p+1] < 0x80 { // fast path for nearly all entries
		switch v := d[p+2]; {
		case v < 0x80:
			return int(d[p]), int(d[p+1]), int(v), p + 3
		case d[p+3] < 0x80:
			return int(d[p]), int(d[p+1]), int(v&0x7f) | int(d[p+3])<<7, p + 4
		}
	}
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

// Entries iterates over the entries of a block without checking their order. Key and Val are views valid until the next
// call.
type Entries struct {
	Data []byte
	Pos  int
	At   int // offset of the current entry
	Key  []byte
	Val  []byte
}

// Next moves to the next entry; false without an error is the end.
func (e *Entries) Next() (bool, error) {
	if e.Pos >= len(e.Data) {
		return false, nil
	}
	e.At = e.Pos
	shared, unshared, value, p := EntryHeader(e.Data, e.Pos)
	if p < 0 || value > len(e.Data)-p-unshared || shared > len(e.Key) {
		return false, fmt.Errorf("at %d of the block: %w", e.Pos, ErrEntry)
	}
	e.Key = append(e.Key[:shared], e.Data[p:p+unshared]...)
	e.Val = e.Data[p+unshared : p+unshared+value]
	e.Pos = p + unshared + value
	return true, nil
}

// Each calls f with every entry of a block that is not parsed yet, until f fails.
func Each(b []byte, f func(e *Entries) error) error {
	bl, err := Parse(b)
	if err != nil {
		return err
	}
	e := Entries{Data: bl.Entries}
	for {
		if ok, err := e.Next(); !ok || err != nil {
			return err
		}
		if err := f(&e); err != nil {
			return err
		}
	}
}

// Walk iterates over the data blocks of a sorted table in index order, independent of the table's storage.
type Walk interface {
	// Next moves to the next block; false without an error is the end.
	Next() (bool, error)
	// Seek moves to the first block that may hold keys at or after key, possibly backward; false without an error is
	// the end.
	Seek(key []byte) (bool, error)
	// SkipTo advances by at least one block, to the first that ends at or after off; false without an error is the end,
	// where Handle returns the last block.
	SkipTo(off uint64) (bool, error)
	// Separator returns a user key at or above all keys of the block and below the keys of the next one. It is valid
	// until the next move.
	Separator() []byte
	// Handle returns the block's handle.
	Handle() Handle
	// Load returns the block, verified and decompressed. It is valid until the next call.
	Load() (Block, error)
	// Counted reports whether the block was counted already. If not, its reader passes the counts to Count, or nil if
	// it does not read all of the block, and any error of its restart points. Count's error is about the block or, once
	// all blocks are counted, about the table: the rows were readable, but are not the original ones.
	Counted() bool
	Count(n *Counts, err error) error
	// GiveBack frees the memory of the block; Load reads it again.
	GiveBack()
	// Close ends the walk.
	Close()
}

// TrailerLen is the length of a block's trailer: codec and checksum.
const TrailerLen = 5

// MaxSize limits the decompressed size of a block: rows are below 4 GiB in any engine, and far below in practice.
const MaxSize = 1 << 31

// Handle locates a block in a file; Size excludes the trailer.
type Handle struct{ Off, Size uint64 }

// ReadHandle decodes a block handle.
func ReadHandle(f *base.Fields, field string) Handle {
	return Handle{f.Uvarint(field), f.Uvarint(field)}
}

// Check returns an error unless the block lies within a file of size bytes.
func (h Handle) Check(size int64) error {
	if h.Size > MaxSize || h.Off > uint64(size) || h.Size+TrailerLen > uint64(size)-h.Off {
		return fmt.Errorf("block of %s bytes at %d in a file of %s bytes", record.Number(h.Size), h.Off, record.Number(size))
	}
	return nil
}
