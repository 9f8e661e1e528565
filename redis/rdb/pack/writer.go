package pack

import (
	"encoding/binary"
	"math"
	"slices"

	"kvferry/internal/sys/bufpool"
)

// Writer builds a ziplist or a listpack. Reader documents their layout.
type Writer struct {
	kind  Kind
	b     []byte
	count int
	last  int // offset of the last entry
	prev  int // its size
}

// Begin starts a ziplist or listpack.
func (p *Writer) Begin(kind Kind) {
	p.kind, p.count, p.last, p.prev = kind, 0, ziplistHead, 0
	head := ziplistHead
	if kind == Listpack {
		head = listpackHead
	}
	p.b = append(bufpool.Reset(p.b), make([]byte, ziplistHead)[:head]...)
}

// Size returns the number of bytes without the end byte.
func (p *Writer) Size() int { return len(p.b) }

// Grow reserves about n bytes if n is large.
func (p *Writer) Grow(n int) {
	if n > bufpool.Large {
		p.b = slices.Grow(p.b, n+n/64)
	}
}

// End finishes the encoding.
func (p *Writer) End() []byte {
	p.b = append(p.b, endByte)
	p.head(len(p.b))
	return p.b
}

// head writes the head.
func (p *Writer) head(size int) {
	binary.LittleEndian.PutUint32(p.b, uint32(size))
	at := 4
	if p.kind == Ziplist {
		binary.LittleEndian.PutUint32(p.b[4:], uint32(p.last))
		at = 8
	}
	binary.LittleEndian.PutUint16(p.b[at:], uint16(min(p.count, countMany)))
}

// Add adds a text, as an integer if it is canonical decimal.
func (p *Writer) Add(s []byte) {
	if n, ok := ParseInt(s); ok {
		p.AddInt(n)
		return
	}
	from := p.entry()
	if p.kind == Ziplist {
		p.b = appendZiplistHead(p.b, len(s))
	} else {
		p.b = appendListpackHead(p.b, len(s))
	}
	p.b = append(p.b, s...)
	p.close(from)
}

// Alone appends a ziplist of a single long text as a string, after its length. It copies the text only once.
func (p *Writer) Alone(dst, s []byte, length func(dst []byte, n uint64) []byte) []byte {
	p.Begin(Ziplist)
	p.entry()
	p.b = appendZiplistHead(p.b, len(s))
	p.count = 1
	size := len(p.b) + len(s) + 1
	p.head(size)
	dst = append(length(dst, uint64(size)), p.b...)
	return append(append(dst, s...), endByte)
}

// AddInt adds an integer.
func (p *Writer) AddInt(n int64) {
	from := p.entry()
	if p.kind == Ziplist {
		p.b = appendZiplistInt(p.b, n)
	} else {
		p.b = appendListpackInt(p.b, n)
	}
	p.close(from)
}

// AddScore adds a score, as an integer if it is integral.
func (p *Writer) AddScore(f float64) {
	if n := int64(f); math.Abs(f) < 1<<53 && float64(n) == f && (n != 0 || !math.Signbit(f)) {
		p.AddInt(n)
		return
	}
	var text [32]byte
	p.Add(AppendScore(text[:0], f))
}

// entry starts an entry and returns its offset.
func (p *Writer) entry() int {
	from := len(p.b)
	if p.kind == Listpack {
		return from
	}
	p.last = from
	if p.prev < prevLenLong {
		p.b = append(p.b, byte(p.prev))
	} else {
		p.b = binary.LittleEndian.AppendUint32(append(p.b, prevLenLong), uint32(p.prev))
	}
	return from
}

// close ends the entry at an offset.
func (p *Writer) close(from int) {
	p.count++
	p.prev = len(p.b) - from
	if p.kind == Listpack {
		p.b = appendBacklen(p.b, p.prev)
	}
}

func appendZiplistHead(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, 1<<6|byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0x80), uint32(n))
}

func appendZiplistInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0 && n <= 12:
		return append(dst, zipImm0+byte(n))
	case n >= math.MinInt8 && n <= math.MaxInt8:
		return append(dst, zipInt8, byte(n))
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return binary.LittleEndian.AppendUint16(append(dst, zipInt16), uint16(n))
	case n >= -1<<23 && n < 1<<23:
		return append(dst, zipInt24, byte(n), byte(n>>8), byte(n>>16))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return binary.LittleEndian.AppendUint32(append(dst, zipInt32), uint32(n))
	}
	return binary.LittleEndian.AppendUint64(append(dst, zipInt64), uint64(n))
}

func appendListpackHead(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, 0x80|byte(n))
	case n < 1<<12:
		return append(dst, 0xE0|byte(n>>8), byte(n))
	}
	return binary.LittleEndian.AppendUint32(append(dst, lpStr32), uint32(n))
}

func appendListpackInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0 && n <= 127:
		return append(dst, byte(n))
	case n >= -1<<12 && n < 1<<12:
		return append(dst, 0xC0|byte(n>>8)&0x1f, byte(n))
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return binary.LittleEndian.AppendUint16(append(dst, lpInt16), uint16(n))
	case n >= -1<<23 && n < 1<<23:
		return append(dst, lpInt24, byte(n), byte(n>>8), byte(n>>16))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return binary.LittleEndian.AppendUint32(append(dst, lpInt32), uint32(n))
	}
	return binary.LittleEndian.AppendUint64(append(dst, lpInt64), uint64(n))
}

// appendBacklen appends the size of an entry in groups of 7 bits, the most significant first and without bit 7.
func appendBacklen(dst []byte, size int) []byte {
	n := backlenSize(size)
	for i := n - 1; i >= 0; i-- {
		c := byte(size>>(7*i)) & 0x7f
		if i < n-1 {
			c |= 0x80
		}
		dst = append(dst, c)
	}
	return dst
}

// EndJoined appends a listpack of its own entries and then the entries of other, after its length. Call it without End
// on either. It copies the entries of other only once.
func (p *Writer) EndJoined(dst []byte, other *Writer, length func(dst []byte, n uint64) []byte) []byte {
	more := other.b[listpackHead:]
	p.count += other.count
	size := len(p.b) + len(more) + 1
	p.head(size)
	dst = slices.Grow(dst, maxLength+size)
	dst = append(length(dst, uint64(size)), p.b...)
	return append(append(dst, more...), endByte)
}

// maxLength is the maximum number of bytes that length appends.
const maxLength = 9

// AppendIntset appends an intset of at least one number, in ascending order, after its length.
func AppendIntset(dst []byte, numbers []int64, length func(dst []byte, n uint64) []byte) []byte {
	width := 2
	if lo, hi := numbers[0], numbers[len(numbers)-1]; lo < math.MinInt32 || hi > math.MaxInt32 {
		width = 8
	} else if lo < math.MinInt16 || hi > math.MaxInt16 {
		width = 4
	}
	dst = length(dst, uint64(intsetHead+width*len(numbers)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(width))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(numbers)))
	for _, n := range numbers {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		dst = append(dst, b[:width]...)
	}
	return dst
}
