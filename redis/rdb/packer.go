package rdb

import (
	"encoding/binary"
	"math"
)

// packer makes a ziplist or a listpack. packed says how they are laid out.
type packer struct {
	kind  packing
	b     []byte
	count int
	last  int // offset of the last entry
	prev  int // its size
}

// begin starts one.
func (p *packer) begin(kind packing) {
	p.kind, p.count, p.last, p.prev = kind, 0, ziplistHead, 0
	head := ziplistHead
	if kind == listpack {
		head = listpackHead
	}
	p.b = append(p.b[:0], make([]byte, ziplistHead)[:head]...)
}

// size is how many bytes it has without its end.
func (p *packer) size() int { return len(p.b) }

// end finishes it.
func (p *packer) end() []byte {
	p.b = append(p.b, packedEnd)
	p.head(len(p.b))
	return p.b
}

// head sets what it begins with.
func (p *packer) head(size int) {
	binary.LittleEndian.PutUint32(p.b, uint32(size))
	at := 4
	if p.kind == ziplist {
		binary.LittleEndian.PutUint32(p.b[4:], uint32(p.last))
		at = 8
	}
	binary.LittleEndian.PutUint16(p.b[at:], uint16(min(p.count, packedMany)))
}

// add adds a text, as an integer when it is that of one.
func (p *packer) add(s []byte) {
	if n, ok := canonical(s); ok {
		p.addInt(n)
		return
	}
	from := p.entry()
	if p.kind == ziplist {
		p.b = appendZiplistHead(p.b, len(s))
	} else {
		p.b = appendListpackHead(p.b, len(s))
	}
	p.b = append(p.b, s...)
	p.close(from)
}

// alone appends a string that is a ziplist of one long text, which is copied but once.
func (p *packer) alone(dst, s []byte) []byte {
	p.begin(ziplist)
	p.entry()
	p.b = appendZiplistHead(p.b, len(s))
	p.count = 1
	size := len(p.b) + len(s) + 1
	p.head(size)
	dst = append(appendLen(dst, uint64(size)), p.b...)
	return append(append(dst, s...), packedEnd)
}

// addInt adds an integer.
func (p *packer) addInt(n int64) {
	from := p.entry()
	if p.kind == ziplist {
		p.b = appendZiplistInt(p.b, n)
	} else {
		p.b = appendListpackInt(p.b, n)
	}
	p.close(from)
}

// addScore adds a score, as an integer when it is one.
func (p *packer) addScore(f float64) {
	if n := int64(f); math.Abs(f) < 1<<53 && float64(n) == f && (n != 0 || !math.Signbit(f)) {
		p.addInt(n)
		return
	}
	var text [32]byte
	p.add(appendScoreText(text[:0], f))
}

// entry begins an entry and returns where.
func (p *packer) entry() int {
	from := len(p.b)
	if p.kind == listpack {
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

// close ends the entry that began at an offset.
func (p *packer) close(from int) {
	p.count++
	p.prev = len(p.b) - from
	if p.kind == listpack {
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
