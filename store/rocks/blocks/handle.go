package blocks

import (
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

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
