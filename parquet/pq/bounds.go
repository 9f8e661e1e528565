package pq

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// maxBound is the number of bytes of a least and greatest value that statistics keep.
const maxBound = 64

// bounds are the least and greatest value of a page or chunk.
type bounds struct {
	some        bool
	min, max    []byte // at most maxBound bytes of byte strings
	short, cut  bool   // min, max were cut
	low, high   int64
	least, most float64
}

// bytes adds a byte string.
func (b *bounds) bytes(v []byte) {
	if !b.some {
		b.some = true
		b.setMin(v)
		b.setMax(v)
		return
	}
	if bytes.Compare(v, b.min) < 0 {
		b.setMin(v)
	} else if bytes.Compare(v, b.max) > 0 {
		b.setMax(v)
	}
}

func (b *bounds) setMin(v []byte) {
	n := min(len(v), maxBound)
	b.min, b.short = append(b.min[:0], v[:n]...), n < len(v)
}

func (b *bounds) setMax(v []byte) {
	n := min(len(v), maxBound)
	b.max, b.cut = append(b.max[:0], v[:n]...), n < len(v)
}

// int adds an integer.
func (b *bounds) int(v int64) {
	if !b.some {
		b.some, b.low, b.high = true, v, v
	}
	b.low, b.high = min(b.low, v), max(b.high, v)
}

// float adds a number; NaN has no place in statistics.
func (b *bounds) float(v float64) {
	switch {
	case v != v:
	case !b.some:
		b.some, b.least, b.most = true, v, v
	default:
		b.least, b.most = min(b.least, v), max(b.most, v)
	}
}

// add extends the bounds by those of a page.
func (b *bounds) add(p *bounds) {
	if !p.some {
		return
	}
	if !b.some {
		b.some, b.low, b.high, b.least, b.most = true, p.low, p.high, p.least, p.most
		b.min, b.max, b.short, b.cut = append(b.min[:0], p.min...), append(b.max[:0], p.max...), p.short, p.cut
		return
	}
	b.low, b.high = min(b.low, p.low), max(b.high, p.high)
	b.least, b.most = min(b.least, p.least), max(b.most, p.most)
	if c := bytes.Compare(p.min, b.min); c < 0 || c == 0 && !p.short {
		b.min, b.short = append(b.min[:0], p.min...), p.short
	}
	if c := bytes.Compare(p.max, b.max); c > 0 || c == 0 && p.cut {
		b.max, b.cut = append(b.max[:0], p.max...), p.cut
	}
}

// ends encodes the bounds. ok is false without values, or if no short byte string is above them all, as for FF FF …
func (b *bounds) ends(k Kind) (least, most []byte, ok bool) {
	if !b.some {
		return nil, nil, false
	}
	switch k {
	case Integer, Timestamp:
		return binary.LittleEndian.AppendUint64(nil, uint64(b.low)), binary.LittleEndian.AppendUint64(nil, uint64(b.high)), true
	case Number:
		low, high := b.least, b.most
		if low == 0 { // zeros have signs, and readers compare them as they like
			low = math.Copysign(0, -1)
		}
		if high == 0 {
			high = 0
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(low)), binary.LittleEndian.AppendUint64(nil, math.Float64bits(high)), true
	}
	least, most = bytes.Clone(b.min), bytes.Clone(b.max)
	if k == UTF8 {
		if b.short {
			least = wholeRunes(least)
		}
		if b.cut {
			most = nextText(wholeRunes(most))
		}
	} else if b.cut {
		most = nextBytes(most)
	}
	return least, most, most != nil
}

// nextBytes returns the shortest byte string above every string with a prefix, or nil.
func nextBytes(b []byte) []byte {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return nil
}

// wholeRunes cuts a rune that is not whole off the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// nextText returns text above every text with a prefix, or nil.
func nextText(b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeLastRune(b)
		b = b[:len(b)-n]
		if r++; r == 0xd800 {
			r = 0xe000
		}
		if r <= utf8.MaxRune {
			return utf8.AppendRune(b, r)
		}
	}
	return nil
}
