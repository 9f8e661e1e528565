package base

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"kvferry/record"
)

// Fields reads a buffer field by field. The first error sticks; after it every value is zero.
// Offsets in errors count from base.
type Fields struct {
	Buf  []byte
	Off  int
	Base int64
	Err  error
}

// Left returns the bytes not read yet.
func (f *Fields) Left() int { return len(f.Buf) - f.Off }

// More reports whether nothing went wrong and bytes are left.
func (f *Fields) More() bool { return f.Err == nil && f.Off < len(f.Buf) }

// Fail records the first error, at the current offset.
func (f *Fields) Fail(field string, err error) {
	if f.Err == nil {
		f.Err = &record.CorruptError{Off: f.Base + int64(f.Off), Field: field, Err: err}
	}
}

// short records that a field ends beyond the buffer.
func (f *Fields) short(field string, need int) {
	f.Fail(field, fmt.Errorf("need %s bytes, have %s: %w", record.Number(need), record.Number(f.Left()), record.ErrShort))
}

// Bytes returns the next n bytes as a view.
func (f *Fields) Bytes(field string, n int) []byte {
	if f.Err != nil {
		return nil
	}
	if n < 0 || n > f.Left() {
		f.short(field, n)
		return nil
	}
	b := f.Buf[f.Off : f.Off+n : f.Off+n]
	f.Off += n
	return b
}

// Byte returns the next byte.
func (f *Fields) Byte(field string) byte {
	if b := f.Bytes(field, 1); b != nil {
		return b[0]
	}
	return 0
}

// Uint32 returns the next 4 bytes, little endian.
func (f *Fields) Uint32(field string) uint32 {
	if b := f.Bytes(field, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Uint64 returns the next 8 bytes, little endian.
func (f *Fields) Uint64(field string) uint64 {
	if b := f.Bytes(field, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint returns the next varint.
func (f *Fields) Uvarint(field string) uint64 {
	if f.Err != nil {
		return 0
	}
	v, n := binary.Uvarint(f.Buf[f.Off:])
	if n > 0 {
		f.Off += n
		return v
	}
	if n == 0 {
		f.Fail(field, fmt.Errorf("varint: %w", record.ErrShort))
	} else {
		f.Fail(field, ErrVarint)
	}
	return 0
}

// Uvarint32 returns the next varint, which must fit 32 bits.
func (f *Fields) Uvarint32(field string) uint32 {
	v := f.Uvarint(field)
	if v > math.MaxUint32 {
		f.Fail(field, ErrVarint)
		return 0
	}
	return uint32(v)
}

// Prefixed returns the next length-prefixed bytes as a view.
func (f *Fields) Prefixed(field string) []byte {
	n := f.Uvarint32(field)
	return f.Bytes(field, int(n))
}

// Castagnoli is the polynomial table of all checksums called CRC32c.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MaskCRC converts a CRC32c to its stored form in RocksDB and LevelDB.
func MaskCRC(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }
