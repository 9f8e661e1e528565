package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb/lzf"
)

const (
	// windowSize is the size of a read; it fits the inner CPU caches.
	windowSize = 64 << 10
	// maxHeld is the largest value returned in one piece; larger values are read from the file.
	maxHeld = 1 << 20
)

// input is the source of a decoder: a window into a file, or bytes in memory. It keeps the first error, after which all
// methods are no-ops.
type input struct {
	buf  []byte
	pos  int
	base int64       // offset of buf[0] in the file
	src  io.ReaderAt // nil: buf is complete
	end  int64       // end of the readable range
	pin  int         // first byte of buf to keep; -1: not pinned
	// fresh: elements may refer to an old window, so it must not be overwritten.
	fresh bool
	err   error
}

// reset reads from b, whose first byte has offset off.
func (in *input) reset(b []byte, off int64) {
	*in = input{buf: b, base: off, end: off + int64(len(b)), pin: -1}
}

// open reads a range of a file.
func (in *input) open(r io.ReaderAt, from, end int64) {
	buf := in.buf
	if in.src == nil {
		buf = nil // the caller's bytes
	}
	*in = input{buf: buf[:0], base: from, src: r, end: end, pin: -1}
}

func (in *input) offset() int64 { return in.base + int64(in.pos) }

// left returns the number of remaining bytes.
func (in *input) left() int64 { return in.end - in.offset() }

// fail records the first error, in a field at an offset.
func (in *input) fail(off int64, field string, err error) {
	if in.err == nil {
		in.err = &record.CorruptError{Off: off, Field: field, Err: err}
	}
}

func (in *input) failf(off int64, field, format string, args ...any) {
	in.fail(off, field, fmt.Errorf(format, args...))
}

// countError is a count of items that exceeds the remaining bytes.
type countError struct {
	n    uint64
	left int64
}

func (e *countError) Error() string {
	return fmt.Sprintf("%s do not fit into the %s bytes that are left", record.Number(e.n), record.Number(e.left))
}

// EndsEarly reports whether an error is that of data that ends before a length or count in it is reached.
func EndsEarly(err error) bool {
	var c *countError
	return errors.Is(err, record.ErrShort) || errors.As(err, &c)
}

// short fails with a truncated field.
func (in *input) short(field string, need uint64) {
	in.failf(in.offset(), field, "need %s bytes, have %s: %w", record.Number(need), record.Number(in.left()), record.ErrShort)
}

// has reports whether n bytes follow, and loads them into the window.
func (in *input) has(n uint64, field string) bool {
	if n <= uint64(len(in.buf)-in.pos) && in.err == nil {
		return true
	}
	return in.fill(n, field)
}

func (in *input) fill(n uint64, field string) bool {
	if in.err != nil {
		return false
	}
	if n > uint64(in.left()) {
		in.short(field, n)
		return false
	}
	if in.pin >= 0 && in.pos-in.pin > maxHeld {
		in.pin = -1
	}
	keep := in.pos
	if in.pin >= 0 {
		keep = in.pin
	}
	in.slide(keep, in.pos-keep+int(n)+int(min(windowSize, in.left()-int64(n))))
	have := len(in.buf)
	got, _, err := disk.ReadAt(in.src, in.buf[have:cap(in.buf)][:min(int64(cap(in.buf)-have), in.end-in.base-int64(have))],
		in.base+int64(have))
	in.buf = in.buf[:have+got]
	if len(in.buf)-in.pos >= int(n) {
		return true
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("offset %d: the file shrank: %w", in.base+int64(len(in.buf)), io.ErrUnexpectedEOF)
	}
	in.err = err
	return false
}

// slide drops the bytes before keep and makes room for size bytes.
func (in *input) slide(keep, size int) {
	rest := in.buf[keep:]
	if in.fresh || cap(in.buf) < size {
		if cap(in.buf) > maxHeld && len(rest) <= windowSize {
			rest, in.buf = bytes.Clone(rest), nil // free a large window before allocating the next
		}
		in.buf = append(make([]byte, 0, size), rest...)
	} else {
		in.buf = in.buf[:copy(in.buf[:cap(in.buf)], rest)]
	}
	in.base += int64(keep)
	in.pos -= keep
	if in.pin >= 0 {
		in.pin = 0
	}
}

// takeBytes returns the next n bytes: a view of the window.
func (in *input) takeBytes(n uint64, field string) []byte {
	if !in.has(n, field) {
		return nil
	}
	b := in.buf[in.pos : in.pos+int(n) : in.pos+int(n)]
	in.pos += int(n)
	return b
}

// skip skips n bytes. It drops the pin if the pinned bytes would exceed maxHeld.
func (in *input) skip(n uint64, field string) {
	if n <= uint64(len(in.buf)-in.pos) {
		in.pos += int(n)
		return
	}
	if in.err != nil {
		return
	}
	if n > uint64(in.left()) {
		in.short(field, n)
		return
	}
	if in.pin >= 0 && n <= maxHeld && in.pos-in.pin <= maxHeld {
		if in.fill(n, field) {
			in.pos += int(n)
		}
		return
	}
	in.pin = -1
	in.seek(in.offset() + int64(n))
}

// seek moves to an offset, and drops the window if the offset is outside.
func (in *input) seek(off int64) {
	if at := off - in.base; at >= 0 && at <= int64(len(in.buf)) {
		in.pos = int(at)
		return
	}
	if in.fresh {
		in.buf = nil
	}
	in.buf, in.pos, in.base, in.pin = in.buf[:0], 0, off, -1
}

func (in *input) byte(field string) byte {
	if in.pos < len(in.buf) {
		c := in.buf[in.pos]
		in.pos++
		return c
	}
	return in.nextByte(field)
}

func (in *input) nextByte(field string) (c byte) {
	if b := in.takeBytes(1, field); b != nil {
		c = b[0]
	}
	return c
}

// near returns the bounds of the next string in the window. ok is false unless the window has all of it and its length
// has at most 14 bits, which is the common case.
func (in *input) near() (from, to int, ok bool) {
	if in.err != nil || len(in.buf)-in.pos < 2 {
		return 0, 0, false
	}
	from = in.pos + 1
	n := int(in.buf[in.pos])
	switch n >> 6 {
	case len14:
		n = n&0x3f<<8 | int(in.buf[from])
		from++
	case len6:
	default:
		return 0, 0, false
	}
	return from, from + n, n <= len(in.buf)-from
}

func (in *input) uint32(field string) (n uint32) {
	if b := in.takeBytes(4, field); b != nil {
		n = binary.LittleEndian.Uint32(b)
	}
	return n
}

func (in *input) uint64(field string) (n uint64) {
	if b := in.takeBytes(8, field); b != nil {
		n = binary.LittleEndian.Uint64(b)
	}
	return n
}

// First bytes of a length.
const (
	len6   = 0 // two high bits
	len14  = 1
	lenBig = 2
	len32  = 0x80
	len64  = 0x81
	// Special strings, where the two high bits are set.
	strInt8  = 0xC0
	strInt16 = 0xC1
	strInt32 = 0xC2
	strLZF   = 0xC3
)

// length reads a length. If isString is set, special is the first byte of a string without a plain length.
func (in *input) length(field string, isString bool) (n uint64, special byte) {
	c := in.byte(field)
	switch c >> 6 {
	case len6:
		return uint64(c), 0
	case len14:
		return uint64(c&0x3f)<<8 | uint64(in.byte(field)), 0
	case lenBig:
		switch c {
		case len32:
			if b := in.takeBytes(4, field); b != nil {
				n = uint64(binary.BigEndian.Uint32(b))
			}
			return n, 0
		case len64:
			if b := in.takeBytes(8, field); b != nil {
				n = binary.BigEndian.Uint64(b)
			}
			return n, 0
		}
	}
	if isString && c >= strInt8 && c <= strLZF {
		return 0, c
	}
	in.failf(in.offset()-1, field, "%#02x does not begin a length", c)
	return 0, 0
}

func (in *input) len(field string) uint64 {
	if in.pos < len(in.buf) && in.buf[in.pos]>>6 == len6 && in.err == nil {
		in.pos++
		return uint64(in.buf[in.pos-1])
	}
	n, _ := in.length(field, false)
	return n
}

// count reads the number of items of at least size bytes each. It rejects a count that exceeds the remaining bytes.
func (in *input) count(field string, size uint64) uint64 {
	off := in.offset()
	n := in.len(field)
	if in.err == nil && n > uint64(in.left())/size {
		in.fail(off, field, &countError{n, in.left()})
		return 0
	}
	return n
}

// skipString skips a string.
func (in *input) skipString(field string) {
	if _, to, ok := in.near(); ok {
		in.pos = to
		return
	}
	n, special := in.length(field, true)
	switch special {
	case 0:
		in.skip(n, field)
	case strLZF:
		clen := in.len(field)
		in.len(field)
		in.skip(clen, field)
	default:
		in.skip(intSize(special), field)
	}
}

// intSize returns the size of an integer string.
func intSize(special byte) uint64 { return 1 << (special & 3) }

// str reads a string. It returns a view of the window, or appends the string to text and returns both.
func (in *input) str(field string, text []byte) (s, _ []byte) {
	if from, to, ok := in.near(); ok {
		in.pos = to
		return in.buf[from:to:to], text
	}
	n, special := in.length(field, true)
	if special == 0 {
		return in.takeBytes(n, field), text
	}
	start := len(text)
	if special == strLZF {
		text = in.lzf(field, text)
	} else {
		text = in.integer(field, special, text)
	}
	return text[start:len(text):len(text)], text
}

// integer appends the text of an integer string.
func (in *input) integer(field string, special byte, text []byte) []byte {
	b := in.takeBytes(intSize(special), field)
	if b == nil {
		return text
	}
	var n int64
	switch special {
	case strInt8:
		n = int64(int8(b[0]))
	case strInt16:
		n = int64(int16(binary.LittleEndian.Uint16(b)))
	default:
		n = int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return strconv.AppendInt(text, n, 10)
}

// lzf appends a decompressed string.
func (in *input) lzf(field string, text []byte) []byte {
	off := in.offset()
	clen, ulen := in.len(field), in.len(field)
	b := in.takeBytes(clen, field)
	if in.err != nil {
		return text
	}
	out, err := lzf.Append(text, b, ulen)
	if err != nil {
		in.fail(off, field, err)
		return text
	}
	return out
}

// maxText limits the decoded text of a batch, and the bytes it pins in file windows.
const maxText = 256 << 10

func (in *input) skipStrings(n uint64) {
	for ; in.err == nil; n-- {
		if n -= in.skipShort(n, 0); n == 0 {
			return
		}
		in.skipString("string")
	}
}

// skipShort skips up to n short strings in the window, each followed by behind more bytes. It returns their number.
func (in *input) skipShort(n uint64, behind int) (done uint64) {
	buf, pos := in.buf, in.pos
	for done < n && pos < len(buf) {
		c := int(buf[pos])
		if c >= 1<<6 || c+behind >= len(buf)-pos {
			break
		}
		pos += 1 + c + behind
		done++
	}
	in.pos = pos
	return done
}

func (in *input) skipLens(n int) {
	for ; n > 0 && in.err == nil; n-- {
		in.len("stream")
	}
}
