package main

import (
	"encoding/binary"
	"errors"
	"slices"

	"kvferry/redis/rdb"
	"kvferry/redis/rdb/lzf"
	"kvferry/redis/rdb/pack"
)

// value is a disassembled value of an RDB file, to be reassembled with a fault inside and valid lengths.
type value struct {
	t     rdb.Type
	parts []part
	tail  func([]byte) []byte // changes the assembled bytes
}

// part is a piece of a value.
type part struct {
	kind  partKind
	n     uint64
	b     []byte
	pack  pack.Kind // kind of a packed collection
	width byte      // encoding of a length or string; 0: the shortest
}

type partKind uint8

const (
	partLen  partKind = iota
	partText          // a string
	partPack          // a string that is a packed collection
	partRaw           // bytes
)

func (v *value) clone() *value {
	out := &value{t: v.t, parts: slices.Clone(v.parts)}
	for i := range out.parts {
		out.parts[i].b = slices.Clone(out.parts[i].b)
	}
	return out
}

// write assembles a value.
func (v *value) write() (out []byte) {
	for i := range v.parts {
		out = v.parts[i].append(out)
	}
	if v.tail != nil {
		out = v.tail(out)
	}
	return out
}

// Encodings of a string or a length.
const (
	wide  = 1 // with a length of 32 bits
	wider = 2 // of 64 bits
	short = 3 // a text as an integer
	lzfed = 4 // a text compressed
)

func (p *part) append(out []byte) []byte {
	if p.kind == partRaw {
		return append(out, p.b...)
	}
	n := p.n
	if p.kind != partLen {
		n = uint64(len(p.b))
	}
	switch p.width {
	case wide:
		out = rdb.AppendWideLen(out, n)
	case wider:
		out = binary.BigEndian.AppendUint64(append(out, 0x81), n)
	case short:
		return rdb.AppendString(out, p.b)
	case lzfed:
		packed := literals(p.b)
		out = rdb.AppendLen(append(out, 0xC3), uint64(len(packed)))
		return append(rdb.AppendLen(out, n), packed...)
	default:
		out = rdb.AppendLen(out, n)
	}
	return append(out, p.b...)
}

// literals encodes a text as LZF, without references.
func literals(b []byte) (out []byte) {
	for run := range slices.Chunk(b, 32) {
		out = append(append(out, byte(len(run)-1)), run...)
	}
	return out
}

// taker disassembles a value.
type taker struct {
	b   []byte
	v   *value
	err error
}

var errPart = errors.New("not a value")

// takeApart disassembles the bytes of a value. An unknown form becomes a single part.
func takeApart(t rdb.Type, b []byte, valkey bool) *value {
	x := &taker{b: b, v: &value{t: t}}
	x.all(t, valkey)
	if x.err != nil || len(x.b) > 0 {
		return &value{t: t, parts: []part{{kind: partRaw, b: b}}}
	}
	return x.v
}

func (x *taker) all(t rdb.Type, valkey bool) {
	switch {
	case t == rdb.TypeString:
		x.text()
	case t == rdb.TypeList, t == rdb.TypeSet:
		x.each(x.text)
	case t == rdb.TypeHash:
		x.each(x.text, x.text)
	case t == rdb.TypeZSet:
		x.each(x.text, x.score)
	case t == rdb.TypeZSet2, valkey && t == rdb.TypeValkeyHash:
		x.each(x.text, func() {
			if t == rdb.TypeValkeyHash {
				x.text()
			}
			x.raw(8)
		})
	case t == rdb.TypeHashExpire:
		x.raw(8)
		x.each(func() { x.len() }, x.text, x.text)
	case t == rdb.TypeHashPackedExp:
		x.raw(8)
		x.packed(pack.Listpack)
	case t == rdb.TypeHashZipmap:
		x.packed(pack.Zipmap)
	case t == rdb.TypeSetIntset:
		x.packed(pack.Intset)
	case t == rdb.TypeListZiplist, t == rdb.TypeZSetZiplist, t == rdb.TypeHashZiplist:
		x.packed(pack.Ziplist)
	case t == rdb.TypeQuicklist:
		x.each(func() { x.packed(pack.Ziplist) })
	case t == rdb.TypeHashListpack, t == rdb.TypeZSetListpack, t == rdb.TypeSetListpack:
		x.packed(pack.Listpack)
	case t == rdb.TypeQuicklist2:
		x.each(func() {
			if x.len() == rdb.NodePlain {
				x.text()
			} else {
				x.packed(pack.Listpack)
			}
		})
	case t == rdb.TypeStream, t >= rdb.TypeStream2 && t <= rdb.TypeStream3, t == rdb.TypeStream4, t == rdb.TypeStream5:
		x.stream(t)
	default:
		x.err = errPart
	}
}

func (x *taker) stream(t rdb.Type) {
	x.each(x.text, func() { x.packed(pack.Listpack) })
	x.lens(3)
	if t >= rdb.TypeStream2 {
		x.lens(5)
	}
	ids := func() { x.each(func() { x.raw(rdb.IDLen) }) }
	x.each(func() {
		x.text()
		x.lens(2)
		if t >= rdb.TypeStream2 {
			x.lens(1)
		}
		x.each(func() { x.raw(rdb.IDLen); x.raw(8); x.lens(1) })
		x.each(func() {
			x.text()
			x.raw(8)
			if t >= rdb.TypeStream3 {
				x.raw(8)
			}
			ids()
		})
		if t >= rdb.TypeStream5 {
			ids()
		}
	})
	if t >= rdb.TypeStream4 {
		x.lens(2)
		x.each(func() { x.text(); x.each(x.text, func() { x.lens(2) }) })
		x.lens(2)
	}
}

// each takes a count n, and calls the functions f n times.
func (x *taker) each(f ...func()) {
	for n := x.len(); n > 0 && x.err == nil; n-- {
		for _, one := range f {
			one()
		}
	}
}

func (x *taker) lens(n int) {
	for range n {
		x.len()
	}
}

func (x *taker) add(p part) { x.v.parts = append(x.v.parts, p) }

func (x *taker) len() uint64 {
	n, special := x.number()
	if special != 0 {
		x.err = errPart
	}
	x.add(part{kind: partLen, n: n})
	return n
}

// number takes a length, or the first byte of a special string.
func (x *taker) number() (n uint64, special byte) {
	c := x.takeBytes(1)[0]
	switch {
	case c>>6 == 0:
		return uint64(c), 0
	case c>>6 == 1:
		return uint64(c&0x3f)<<8 | uint64(x.takeBytes(1)[0]), 0
	case c == 0x80:
		return uint64(binary.BigEndian.Uint32(x.takeBytes(4))), 0
	case c == 0x81:
		return binary.BigEndian.Uint64(x.takeBytes(8)), 0
	case c < 0xC0 || c > 0xC3:
		x.err = errPart
	}
	return 0, c
}

// takeBytes takes n bytes, or returns zeros if too few are left.
func (x *taker) takeBytes(n uint64) []byte {
	if n > uint64(len(x.b)) {
		x.err = errPart
		return make([]byte, min(n, 8))
	}
	b := x.b[:n:n]
	x.b = x.b[n:]
	return b
}

func (x *taker) raw(n uint64) { x.add(part{kind: partRaw, b: x.takeBytes(n)}) }

func (x *taker) text() { x.add(part{kind: partText, b: x.string()}) }

func (x *taker) packed(kind pack.Kind) { x.add(part{kind: partPack, b: x.string(), pack: kind}) }

// score takes a score as text, with its length.
func (x *taker) score() {
	c := x.takeBytes(1)[0]
	b := []byte{c}
	if c < 253 {
		b = append(b, x.takeBytes(uint64(c))...)
	}
	x.add(part{kind: partRaw, b: b})
}

func (x *taker) string() []byte {
	n, special := x.number()
	switch special {
	case 0:
		return x.takeBytes(n)
	case 0xC3:
		clen, _ := x.number()
		ulen, _ := x.number()
		b, err := lzf.Append(nil, x.takeBytes(clen), ulen)
		x.err = errors.Join(x.err, err)
		return b
	}
	x.takeBytes(1 << (special & 3))
	return []byte("12")
}
