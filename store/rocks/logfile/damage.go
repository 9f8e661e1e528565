package logfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"kvferry/store/rocks/base"
)

// tooLong judges a fragment that reaches beyond the bytes of its block. It is torn if the file ends there and writers
// make such fragments: within a block, which the first part of a record fills. In a recycled file it is a leftover unless
// it has the number of this log.
func (l *Reader) tooLong(head, size int) error {
	typ, room := l.block[l.pos+6], BlockSize-l.pos-head
	if typ > fragReuse && typ <= 2*fragReuse {
		typ -= fragReuse
	}
	if goesOn := typ == fragFirst || typ == fragMiddle; size > room || goesOn && size < room && l.codec == codecNone {
		return l.damaged(head, fmt.Errorf("fragment of type %d and %d bytes, where its block has room for %d", typ, size, room))
	}
	err := fmt.Errorf("fragment of %d bytes, %d left in its block", size, l.n-l.pos-head)
	if l.older(head) {
		return l.damaged(head, err)
	}
	if e := l.torn(); e != ErrTorn {
		return err
	}
	if l.codec != codecNone {
		return ErrTorn
	}
	l.Partial = l.block[min(l.pos+head, l.n):l.n]
	return ErrTorn
}

// recycled reports whether the file may have had an older use: its fragments carry a number, or the first one does.
func (l *Reader) recycled(head int) bool { return l.reuse || head == ReuseHeaderLen && !l.records }

// older reports whether a fragment of a recycled file is what an older use left, by its number or for the lack of one.
func (l *Reader) older(head int) bool {
	b := l.block[l.pos:l.n]
	return l.recycled(head) && (head != ReuseHeaderLen || len(b) >= head && binary.LittleEndian.Uint32(b[HeaderLen:]) != l.number)
}

// torn decides whether the bytes from pos to the end of the file are a truncated record or damage: after damage, a
// whole record follows.
func (l *Reader) torn() error {
	for i := l.pos + 1; i+HeaderLen <= l.n; i++ {
		if l.wholeAt(i, false) {
			return fmt.Errorf("damaged fragment: a whole one follows at offset %d", l.blockOff+int64(i))
		}
	}
	l.ended = true
	return ErrTorn
}

// wholeAt reports whether a fragment with a valid checksum is at i of the block, which must have room for a header.
// With reuse, only a fragment with this log's number counts.
func (l *Reader) wholeAt(i int, reuse bool) bool {
	b := l.block[i:l.n]
	size, typ := int(binary.LittleEndian.Uint16(b[4:])), b[6]
	head := headerLen(typ)
	if !isDefined(typ) || head+size > len(b) || (reuse && head == HeaderLen) {
		return false
	}
	if head == ReuseHeaderLen && binary.LittleEndian.Uint32(b[HeaderLen:]) != l.number {
		return false
	}
	return base.MaskCRC(crc32.Checksum(b[6:head+size], base.Castagnoli)) == binary.LittleEndian.Uint32(b)
}

// damaged judges an invalid fragment. In a recycled file it is a leftover of the older log, unless a fragment of this
// log follows.
func (l *Reader) damaged(head int, cause error) error {
	if !l.recycled(head) {
		return cause
	}
	for start := l.pos + 1; ; start = 0 {
		for i := start; i+HeaderLen <= l.n; i++ {
			if l.wholeAt(i, true) {
				return cause
			}
		}
		if err := l.fill(); err != nil {
			return err
		}
		if l.n == 0 {
			l.Leftover = true
			return io.EOF
		}
	}
}

// Resync continues after damage other than ErrWithin: after a fragment with a wrong checksum if a whole fragment
// follows where its length ends, else with the next block, since any length may be wrong. It skips the rest of this
// block even if it is the last, shorter one, but no block that was read to judge the damage.
func (l *Reader) Resync() {
	l.ZeroAt = -1
	switch {
	case l.blockOff != l.judged:
	case l.beyond > 0 && l.beyond+HeaderLen <= l.n && l.wholeAt(l.beyond, l.reuse):
		l.pos = l.beyond
	default:
		l.pos = l.n
	}
}

// unknown is the error of a fragment of an unknown type. With a valid checksum, a newer engine wrote it.
func (l *Reader) unknown(b []byte, typ byte, size int) error {
	end := HeaderLen + size
	if end <= len(b) && base.MaskCRC(crc32.Checksum(b[6:end], base.Castagnoli)) == binary.LittleEndian.Uint32(b) {
		return base.Unsupported("log with fragment type %d", typ)
	}
	return fmt.Errorf("unknown fragment type %d", typ)
}
