// Package pack reads and writes the packed encodings of small collections: ziplists, listpacks, intsets and zipmaps.
// Each is one string of a file.
package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"kvferry/record"
)

// Item is an entry of a packed encoding: text, or an integer that represents its decimal text.
type Item struct {
	Text  []byte
	N     int64
	IsInt bool
}

// AppendTo returns the item as text: a view, or appended to arena. It returns arena as well.
func (e *Item) AppendTo(arena []byte) (s, _ []byte) {
	if !e.IsInt {
		return e.Text, arena
	}
	start := len(arena)
	arena = strconv.AppendInt(arena, e.N, 10)
	return arena[start:len(arena):len(arena)], arena
}

// Kind is a kind of packed encoding.
type Kind uint8

// Kinds.
const (
	Ziplist Kind = iota
	Listpack
	Intset
	Zipmap
)

// String returns the servers' name of the kind.
func (k Kind) String() string { return [...]string{"ziplist", "listpack", "intset", "zipmap"}[k] }

// Reader iterates over a packed encoding, one string of the file:
//
//	ziplist   zlbytes u32 LE | zltail u32 LE | zllen u16 LE | entries | FF
//	listpack  bytes u32 LE | count u16 LE | entries | FF
//	intset    width u32 LE | count u32 LE | integers LE
//	zipmap    count u8 | (len field | len free value | free × byte)* | FF
//
// A count of 65535, or of 254 in a zipmap, means unknown.
type Reader struct {
	kind  Kind
	b     []byte
	pos   int
	end   int   // end of the entries
	count int   // from the header, -1 if unknown
	seen  int   // entries read
	width int   // of an intset
	last  int64 // of an intset
	value bool  // a zipmap's next item is a value
	prev  int   // Size of the previous entry of a ziplist
	tail  int   // offset of the last entry, from the head of a ziplist
}

// errors of packed encodings; errOdd means an incomplete last element
var (
	errEnd   = errors.New("does not end in FF")
	errEntry = errors.New("an entry reaches beyond the end")
	errCount = errors.New("the number of entries differs from the header")
	errTail  = errors.New("the last entry is not at the offset in the header")
	errOrder = errors.New("integers do not ascend")
	errBack  = errors.New("an entry has a wrong length of the previous entry")
	errBytes = errors.New("an entry has an unknown encoding")
	errOdd   = errors.New("ends within an element")
)

// Sizes of the heads.
const (
	ziplistHead  = 10
	listpackHead = 6
	intsetHead   = 8
	zipmapHead   = 1

	endByte     = 0xFF
	countMany   = 0xFFFF // an unknown count
	zipmapMany  = 254
	prevLenLong = 254
)

// Open starts a packed encoding and validates its sizes.
func (p *Reader) Open(kind Kind, b []byte) error {
	*p = Reader{kind: kind, b: b, count: -1}
	switch kind {
	case Ziplist:
		return p.openZiplist()
	case Listpack:
		return p.openListpack()
	case Intset:
		return p.openIntset()
	}
	if len(b) < zipmapHead+1 {
		return record.Short(0, "zipmap", zipmapHead+1, len(b))
	}
	p.pos = zipmapHead
	if b[0] < zipmapMany {
		p.count = 2 * int(b[0])
	}
	return p.closed()
}

// closed checks the last byte.
func (p *Reader) closed() error {
	p.end = len(p.b) - 1
	if p.b[p.end] != endByte {
		return errEnd
	}
	return nil
}

func (p *Reader) openZiplist() error {
	if len(p.b) < ziplistHead+1 {
		return record.Short(0, "ziplist", ziplistHead+1, len(p.b))
	}
	if n := binary.LittleEndian.Uint32(p.b); uint64(n) != uint64(len(p.b)) {
		return fmt.Errorf("the header gives a size of %s bytes, but it has %s", record.Number(n), record.Number(len(p.b)))
	}
	tail := binary.LittleEndian.Uint32(p.b[4:])
	if tail >= uint32(len(p.b)) {
		return fmt.Errorf("its last entry would be at %d of %s bytes", tail, record.Number(len(p.b)))
	}
	p.tail = int(tail)
	if n := binary.LittleEndian.Uint16(p.b[8:]); n != countMany {
		p.count = int(n)
	}
	p.pos = ziplistHead
	return p.closed()
}

func (p *Reader) openListpack() error {
	if len(p.b) < listpackHead+1 {
		return record.Short(0, "listpack", listpackHead+1, len(p.b))
	}
	if n := binary.LittleEndian.Uint32(p.b); uint64(n) != uint64(len(p.b)) {
		return fmt.Errorf("the header gives a size of %s bytes, but it has %s", record.Number(n), record.Number(len(p.b)))
	}
	if n := binary.LittleEndian.Uint16(p.b[4:]); n != countMany {
		p.count = int(n)
	}
	p.pos = listpackHead
	return p.closed()
}

func (p *Reader) openIntset() error {
	if len(p.b) < intsetHead {
		return record.Short(0, "intset", intsetHead, len(p.b))
	}
	p.width = int(binary.LittleEndian.Uint32(p.b))
	n := binary.LittleEndian.Uint32(p.b[4:])
	if p.width != 2 && p.width != 4 && p.width != 8 {
		return fmt.Errorf("integers of %s bytes", record.Number(p.width))
	}
	if uint64(len(p.b)-intsetHead) != uint64(n)*uint64(p.width) {
		return fmt.Errorf("%s integers of %s bytes in %s bytes", record.Number(n), record.Number(p.width),
			record.Number(len(p.b)-intsetHead))
	}
	p.pos, p.end, p.count = intsetHead, len(p.b), int(n)
	return nil
}

// Kind returns the kind of the encoding.
func (p *Reader) Kind() Kind { return p.kind }

// Size returns the number of bytes.
func (p *Reader) Size() int { return len(p.b) }

// Seen returns the number of entries read.
func (p *Reader) Seen() int { return p.seen }

// Count returns the number of entries in the head, or -1 if unknown.
func (p *Reader) Count() int { return p.count }

// Done reports whether all entries are read. It returns an error if their number differs from the head.
func (p *Reader) Done() (bool, error) {
	switch {
	case p.pos < p.end:
		return false, nil
	case p.count >= 0 && p.seen != p.count:
		return true, errCount
	case p.kind == Ziplist && p.tail != p.pos-p.prev:
		return true, errTail
	}
	return true, nil
}

// Next sets e to the next entry and reports whether there was one.
func (p *Reader) Next(e *Item) (bool, error) {
	if done, err := p.Done(); done {
		return false, err
	}
	p.seen++
	switch p.kind {
	case Listpack:
		return true, p.listpackEntry(e)
	case Ziplist:
		return true, p.ziplistEntry(e)
	case Intset:
		return true, p.intsetEntry(e)
	}
	return true, p.zipmapEntry(e)
}

// text reads a string of n bytes.
func (p *Reader) text(e *Item, at, n int) error {
	if n > p.end-at {
		return errEntry
	}
	e.Text, e.IsInt = p.b[at:at+n:at+n], false
	p.pos = at + n
	return nil
}

// number reads an integer of n bytes, little-endian.
func (p *Reader) number(e *Item, at, n int) error {
	if n > p.end-at {
		return errEntry
	}
	e.N, e.IsInt = littleInt(p.b[at:at+n]), true
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
func (p *Reader) ziplistEntry(e *Item) error {
	from, at := p.pos, p.pos+1
	before := int(p.b[p.pos])
	if p.b[p.pos] >= prevLenLong {
		if at+4 > p.end {
			return errEntry
		}
		before = int(binary.LittleEndian.Uint32(p.b[at:]))
		at += 4
	}
	if before != p.prev {
		return errBack
	}
	if at >= p.end {
		return errEntry
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

// ziplistData decodes an entry without its previous size:
//
//	00xxxxxx            string of up to 63 bytes
//	01xxxxxx xxxxxxxx   string of up to 16383 bytes
//	80 u32 BE           string
//	C0 D0 E0 F0 FE      integer of 16, 32, 64, 24, 8 bits
//	F1 … FD             0 … 12
func (p *Reader) ziplistData(e *Item, at int) error {
	c := p.b[at]
	at++
	switch {
	case c>>6 == 0:
		return p.text(e, at, int(c))
	case c>>6 == 1:
		if at >= p.end {
			return errEntry
		}
		return p.text(e, at+1, int(c&0x3f)<<8|int(p.b[at]))
	case c == 0x80:
		if at+4 > p.end {
			return errEntry
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
		e.N, e.IsInt = int64(c-zipImm0), true
		p.pos = at
		return nil
	}
	return errBytes
}

// Encodings of listpacks.
const (
	lpStr32 = 0xF0
	lpInt16 = 0xF1
	lpInt24 = 0xF2
	lpInt32 = 0xF3
	lpInt64 = 0xF4
)

// listpackEntry decodes encoding, data, and the size of both, which serves backward iteration:
//
//	0xxxxxxx            0 … 127
//	10xxxxxx            string of up to 63 bytes
//	110xxxxx xxxxxxxx   integer of 13 bits
//	1110xxxx xxxxxxxx   string of up to 4095 bytes
//	F0 u32 LE           string
//	F1 F2 F3 F4         integer of 16, 24, 32, 64 bits
func (p *Reader) listpackEntry(e *Item) (err error) {
	from, at := p.pos, p.pos+1
	c := p.b[from]
	switch {
	case c < 0x80:
		e.N, e.IsInt = int64(c), true
		p.pos = at
	case c>>6 == 2:
		err = p.text(e, at, int(c&0x3f))
	case c < lpStr32 && at >= p.end:
		return errEntry
	case c>>5 == 6:
		e.N, e.IsInt = int64(int16(uint16(c)<<11|uint16(p.b[at])<<3))>>3, true
		p.pos = at + 1
	case c>>4 == 14:
		err = p.text(e, at+1, int(c&0xf)<<8|int(p.b[at]))
	case c == lpStr32:
		if at+4 > p.end {
			return errEntry
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
		return errBytes
	}
	if err != nil {
		return err
	}
	return p.backlen(p.pos - from)
}

// backlen skips the size of an entry, in groups of 7 bits, the most significant first.
func (p *Reader) backlen(size int) error {
	n := backlenSize(size)
	if n > p.end-p.pos {
		return errEntry
	}
	var got int
	for i, c := range p.b[p.pos : p.pos+n] {
		if (c&0x80 != 0) != (i > 0) {
			return errBack
		}
		got = got<<7 | int(c&0x7f)
	}
	if got != size {
		return errBack
	}
	p.pos += n
	return nil
}

// backlenSize returns the length of the encoded size of an entry.
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

func (p *Reader) intsetEntry(e *Item) error {
	n := littleInt(p.b[p.pos : p.pos+p.width])
	if p.seen > 1 && n <= p.last {
		return errOrder
	}
	e.N, e.IsInt, p.last = n, true, n
	p.pos += p.width
	return nil
}

// zipmapEntry decodes a field or a value. A length is one byte below 254, or FE and u32 LE.
func (p *Reader) zipmapEntry(e *Item) error {
	n, at := int(p.b[p.pos]), p.pos+1
	switch {
	case n == endByte:
		return errEntry
	case n >= zipmapMany:
		if at+4 > p.end {
			return errEntry
		}
		n = int(binary.LittleEndian.Uint32(p.b[at:]))
		at += 4
		if n < zipmapMany {
			return errBytes // servers reject it
		}
	}
	free := 0
	if p.value {
		if at >= p.end {
			return errEntry
		}
		free = int(p.b[at])
		at++
	}
	p.value = !p.value
	if err := p.text(e, at, n); err != nil {
		return err
	}
	if free > p.end-p.pos {
		return errEntry
	}
	p.pos += free
	return nil
}

// Must reads an entry, and fails at the end.
func (p *Reader) Must(e *Item) error {
	ok, err := p.Next(e)
	if err == nil && !ok {
		err = errOdd
	}
	return err
}
