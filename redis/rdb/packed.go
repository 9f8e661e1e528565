package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"kvferry/record"
)

// item is an entry of a packed encoding: text, or an integer that stands for its decimal text.
type item struct {
	text  []byte
	n     int64
	isInt bool
}

// appendTo returns the item as text: a view, or appended to arena, which is returned.
func (e *item) appendTo(arena []byte) (s, _ []byte) {
	if !e.isInt {
		return e.text, arena
	}
	start := len(arena)
	arena = strconv.AppendInt(arena, e.n, 10)
	return arena[start:len(arena):len(arena)], arena
}

// packing is a kind of packed encoding.
type packing uint8

const (
	ziplist packing = iota
	listpack
	intset
	zipmap
)

// packed walks over a packed encoding, one string of the file:
//
//	ziplist   zlbytes u32 LE | zltail u32 LE | zllen u16 LE | entries | FF
//	listpack  bytes u32 LE | count u16 LE | entries | FF
//	intset    width u32 LE | count u32 LE | integers LE
//	zipmap    count u8 | (len field | len free value | free × byte)* | FF
//
// A count of 65535, or of 254 in a zipmap, says nothing.
type packed struct {
	kind  packing
	b     []byte
	pos   int
	end   int   // of the entries
	count int   // that the header tells, -1 for none
	seen  int   // entries so far
	width int   // of an intset
	last  int64 // of an intset
	value bool  // a zipmap's next item is a value
	prev  int   // size of the entry before, of a ziplist
}

// errors of packed encodings
var (
	errPackedEnd   = errors.New("does not end in FF")
	errPackedEntry = errors.New("an entry reaches beyond the end")
	errPackedCount = errors.New("holds another number of entries than it says")
	errPackedOrder = errors.New("integers do not ascend")
	errPackedBack  = errors.New("an entry says another length of the one before")
	errPackedBytes = errors.New("an entry has an encoding that there is not")
)

// The bytes before the entries.
const (
	ziplistHead  = 10
	listpackHead = 6
	intsetHead   = 8
	zipmapHead   = 1

	packedEnd   = 0xFF
	packedMany  = 0xFFFF // a count that says nothing
	zipmapMany  = 254
	prevLenLong = 254
)

// open starts to walk. Sizes are checked against the bytes that there are.
func (p *packed) open(kind packing, b []byte) error {
	*p = packed{kind: kind, b: b, count: -1}
	switch kind {
	case ziplist:
		return p.openZiplist()
	case listpack:
		return p.openListpack()
	case intset:
		return p.openIntset()
	}
	if len(b) < zipmapHead+1 {
		return record.Short(0, "zipmap", zipmapHead+1, len(b))
	}
	if p.pos = zipmapHead; b[0] < zipmapMany {
		p.count = 2 * int(b[0])
	}
	return p.closed()
}

// closed checks the last byte.
func (p *packed) closed() error {
	p.end = len(p.b) - 1
	if p.b[p.end] != packedEnd {
		return errPackedEnd
	}
	return nil
}

func (p *packed) openZiplist() error {
	if len(p.b) < ziplistHead+1 {
		return record.Short(0, "ziplist", ziplistHead+1, len(p.b))
	}
	if n := binary.LittleEndian.Uint32(p.b); uint64(n) != uint64(len(p.b)) {
		return fmt.Errorf("says that it has %d bytes, and has %d", n, len(p.b))
	}
	if tail := binary.LittleEndian.Uint32(p.b[4:]); tail >= uint32(len(p.b)) {
		return fmt.Errorf("its last entry would be at %d of %d bytes", tail, len(p.b))
	}
	if n := binary.LittleEndian.Uint16(p.b[8:]); n != packedMany {
		p.count = int(n)
	}
	p.pos = ziplistHead
	return p.closed()
}

func (p *packed) openListpack() error {
	if len(p.b) < listpackHead+1 {
		return record.Short(0, "listpack", listpackHead+1, len(p.b))
	}
	if n := binary.LittleEndian.Uint32(p.b); uint64(n) != uint64(len(p.b)) {
		return fmt.Errorf("says that it has %d bytes, and has %d", n, len(p.b))
	}
	if n := binary.LittleEndian.Uint16(p.b[4:]); n != packedMany {
		p.count = int(n)
	}
	p.pos = listpackHead
	return p.closed()
}

func (p *packed) openIntset() error {
	if len(p.b) < intsetHead {
		return record.Short(0, "intset", intsetHead, len(p.b))
	}
	p.width = int(binary.LittleEndian.Uint32(p.b))
	n := binary.LittleEndian.Uint32(p.b[4:])
	if p.width != 2 && p.width != 4 && p.width != 8 {
		return fmt.Errorf("integers of %d bytes", p.width)
	}
	if uint64(len(p.b)-intsetHead) != uint64(n)*uint64(p.width) {
		return fmt.Errorf("%d integers of %d bytes in %d bytes", n, p.width, len(p.b)-intsetHead)
	}
	p.pos, p.end, p.count = intsetHead, len(p.b), int(n)
	return nil
}

// next sets e to the next entry and reports whether there was one.
func (p *packed) next(e *item) (bool, error) {
	if p.pos >= p.end {
		if p.count >= 0 && p.seen != p.count {
			return false, errPackedCount
		}
		return false, nil
	}
	p.seen++
	switch p.kind {
	case listpack:
		return true, p.listpackEntry(e)
	case ziplist:
		return true, p.ziplistEntry(e)
	case intset:
		return true, p.intsetEntry(e)
	}
	return true, p.zipmapEntry(e)
}

// text takes a string of n bytes.
func (p *packed) text(e *item, at, n int) error {
	if n > p.end-at {
		return errPackedEntry
	}
	e.text, e.isInt = p.b[at:at+n:at+n], false
	p.pos = at + n
	return nil
}

// number takes an integer of n bytes, little-endian.
func (p *packed) number(e *item, at, n int) error {
	if n > p.end-at {
		return errPackedEntry
	}
	e.n, e.isInt = littleInt(p.b[at:at+n]), true
	p.pos = at + n
	return nil
}

// littleInt decodes a signed little-endian integer of 1 to 8 bytes.
func littleInt(b []byte) int64 {
	switch len(b) {
	case 8:
		return int64(binary.LittleEndian.Uint64(b))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	}
	var u uint64
	for i, c := range b {
		u |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(u<<shift) >> shift
}

// ziplistEntry decodes
//
//	+---------------------------+----------+------+
//	| size of the entry before  | encoding | data |
//	+---------------------------+----------+------+
//
// The size is one byte below 254, or FE and u32 LE.
func (p *packed) ziplistEntry(e *item) error {
	from, at := p.pos, p.pos+1
	before := int(p.b[p.pos])
	if p.b[p.pos] >= prevLenLong {
		if at+4 > p.end {
			return errPackedEntry
		}
		before = int(binary.LittleEndian.Uint32(p.b[at:]))
		at += 4
	}
	if before != p.prev {
		return errPackedBack
	}
	if at >= p.end {
		return errPackedEntry
	}
	err := p.ziplistData(e, at)
	p.prev = p.pos - from
	return err
}

// Encodings of ziplists.
const (
	zipInt16 = 0xC0
	zipInt32 = 0xD0
	zipInt64 = 0xE0
	zipInt24 = 0xF0
	zipInt8  = 0xFE
	zipImm0  = 0xF1 // 0; up to FD, which is 12
	zipImm12 = 0xFD
)

// ziplistData decodes an entry from its encoding on:
//
//	00xxxxxx            string of up to 63 bytes
//	01xxxxxx xxxxxxxx   string of up to 16383 bytes
//	80 u32 BE           string
//	C0 D0 E0 F0 FE      integer of 16, 32, 64, 24, 8 bits
//	F1 … FD             0 … 12
func (p *packed) ziplistData(e *item, at int) error {
	c := p.b[at]
	at++
	switch {
	case c>>6 == 0:
		return p.text(e, at, int(c))
	case c>>6 == 1:
		if at >= p.end {
			return errPackedEntry
		}
		return p.text(e, at+1, int(c&0x3f)<<8|int(p.b[at]))
	case c == 0x80:
		if at+4 > p.end {
			return errPackedEntry
		}
		return p.text(e, at+4, int(binary.BigEndian.Uint32(p.b[at:])))
	case c == zipInt16:
		return p.number(e, at, 2)
	case c == zipInt32:
		return p.number(e, at, 4)
	case c == zipInt64:
		return p.number(e, at, 8)
	case c == zipInt24:
		return p.number(e, at, 3)
	case c == zipInt8:
		return p.number(e, at, 1)
	case c >= zipImm0 && c <= zipImm12:
		e.n, e.isInt = int64(c-zipImm0), true
		p.pos = at
		return nil
	}
	return errPackedBytes
}

// Encodings of listpacks.
const (
	lpStr32 = 0xF0
	lpInt16 = 0xF1
	lpInt24 = 0xF2
	lpInt32 = 0xF3
	lpInt64 = 0xF4
)

// listpackEntry decodes encoding, data and the size of both, which is for walking backwards:
//
//	0xxxxxxx            0 … 127
//	10xxxxxx            string of up to 63 bytes
//	110xxxxx xxxxxxxx   integer of 13 bits
//	1110xxxx xxxxxxxx   string of up to 4095 bytes
//	F0 u32 LE           string
//	F1 F2 F3 F4         integer of 16, 24, 32, 64 bits
func (p *packed) listpackEntry(e *item) (err error) {
	from, at := p.pos, p.pos+1
	c := p.b[from]
	switch {
	case c < 0x80:
		e.n, e.isInt = int64(c), true
		p.pos = at
	case c>>6 == 2:
		err = p.text(e, at, int(c&0x3f))
	case c < lpStr32 && at >= p.end:
		return errPackedEntry
	case c>>5 == 6:
		e.n, e.isInt = int64(int16(uint16(c)<<11|uint16(p.b[at])<<3))>>3, true
		p.pos = at + 1
	case c>>4 == 14:
		err = p.text(e, at+1, int(c&0xf)<<8|int(p.b[at]))
	case c == lpStr32:
		if at+4 > p.end {
			return errPackedEntry
		}
		err = p.text(e, at+4, int(binary.LittleEndian.Uint32(p.b[at:])))
	case c == lpInt16:
		err = p.number(e, at, 2)
	case c == lpInt24:
		err = p.number(e, at, 3)
	case c == lpInt32:
		err = p.number(e, at, 4)
	case c == lpInt64:
		err = p.number(e, at, 8)
	default:
		return errPackedBytes
	}
	if err != nil {
		return err
	}
	return p.backlen(p.pos - from)
}

// backlen passes over the size of an entry, which is in groups of 7 bits, the most significant first.
func (p *packed) backlen(size int) error {
	n := backlenSize(size)
	if n > p.end-p.pos {
		return errPackedEntry
	}
	var got int
	for i, c := range p.b[p.pos : p.pos+n] {
		if (c&0x80 != 0) != (i > 0) {
			return errPackedBack
		}
		got = got<<7 | int(c&0x7f)
	}
	if got != size {
		return errPackedBack
	}
	p.pos += n
	return nil
}

// backlenSize is how many bytes the size of an entry takes.
func backlenSize(size int) int {
	switch {
	case size <= 127:
		return 1
	case size < 16383:
		return 2
	case size < 2097151:
		return 3
	case size < 268435455:
		return 4
	}
	return 5
}

func (p *packed) intsetEntry(e *item) error {
	n := littleInt(p.b[p.pos : p.pos+p.width])
	if p.seen > 1 && n == p.last {
		return errPackedOrder
	}
	e.n, e.isInt, p.last = n, true, n
	p.pos += p.width
	return nil
}

// zipmapEntry decodes a field or a value. A length is one byte below 254, or FE and u32 LE.
func (p *packed) zipmapEntry(e *item) error {
	n, at := int(p.b[p.pos]), p.pos+1
	switch {
	case n == packedEnd:
		return errPackedEntry
	case n >= zipmapMany:
		if at+4 > p.end {
			return errPackedEntry
		}
		n = int(binary.LittleEndian.Uint32(p.b[at:]))
		at += 4
	}
	free := 0
	if p.value {
		if at >= p.end {
			return errPackedEntry
		}
		free = int(p.b[at])
		at++
	}
	p.value = !p.value
	if err := p.text(e, at, n); err != nil {
		return err
	}
	if free > p.end-p.pos {
		return errPackedEntry
	}
	p.pos += free
	return nil
}

// score reads an item as the score of a zset.
func (e *item) score() (float64, error) {
	if e.isInt {
		return float64(e.n), nil
	}
	return parseScore(e.text)
}

// parseScore reads a score as C's strtod does, but that it is all there is.
func parseScore(b []byte) (float64, error) {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || bytes.IndexByte(b, '_') >= 0 {
		return 0, fmt.Errorf("%s is no score", record.Quote(b))
	}
	return f, nil
}
