package rocksfile

import (
	"encoding/binary"
	"fmt"

	"kvferry/record"
)

// fields reads a buffer field by field. The first error sticks; after it every value is zero.
// Offsets in errors count from base.
type fields struct {
	buf  []byte
	off  int
	base int64
	err  error
}

// left returns the bytes not read yet.
func (f *fields) left() int { return len(f.buf) - f.off }

// more reports whether nothing went wrong and bytes are left.
func (f *fields) more() bool { return f.err == nil && f.off < len(f.buf) }

// fail records the first error, at the current offset.
func (f *fields) fail(field string, err error) {
	if f.err == nil {
		f.err = &record.CorruptError{Off: f.base + int64(f.off), Field: field, Err: err}
	}
}

// short records that a field ends after the buffer.
func (f *fields) short(field string, need int) {
	f.fail(field, fmt.Errorf("need %d bytes, have %d: %w", need, f.left(), record.ErrShort))
}

// bytes returns the next n bytes as a view.
func (f *fields) bytes(field string, n int) []byte {
	if f.err != nil {
		return nil
	}
	if n < 0 || n > f.left() {
		f.short(field, n)
		return nil
	}
	b := f.buf[f.off : f.off+n : f.off+n]
	f.off += n
	return b
}

// byte returns the next byte.
func (f *fields) byte(field string) byte {
	if b := f.bytes(field, 1); b != nil {
		return b[0]
	}
	return 0
}

// uint32 returns the next 4 bytes, little endian.
func (f *fields) uint32(field string) uint32 {
	if b := f.bytes(field, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// uint64 returns the next 8 bytes, little endian.
func (f *fields) uint64(field string) uint64 {
	if b := f.bytes(field, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uvarint returns the next varint.
func (f *fields) uvarint(field string) uint64 {
	if f.err != nil {
		return 0
	}
	v, n := binary.Uvarint(f.buf[f.off:])
	if n == 0 {
		f.fail(field, fmt.Errorf("varint: %w", record.ErrShort))
		return 0
	}
	if n < 0 {
		f.fail(field, errVarint)
		return 0
	}
	f.off += n
	return v
}

// uvarint32 returns the next varint, which must fit 32 bits.
func (f *fields) uvarint32(field string) uint32 {
	v := f.uvarint(field)
	if v > 1<<32-1 {
		f.fail(field, errVarint)
		return 0
	}
	return uint32(v)
}

// prefixed returns the next length-prefixed bytes as a view.
func (f *fields) prefixed(field string) []byte {
	n := f.uvarint32(field)
	return f.bytes(field, int(n))
}

// trailer packs a sequence number and a kind as internal keys do.
func trailer(seq uint64, kind byte) uint64 { return seq<<8 | uint64(kind) }

// splitKey takes an internal key apart. k must have at least trailerLen bytes.
func splitKey(k []byte) (user []byte, tr uint64) {
	n := len(k) - trailerLen
	return k[:n:n], binary.LittleEndian.Uint64(k[n:])
}

// appendKey appends an internal key.
func appendKey(dst, user []byte, tr uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, user...), tr)
}
