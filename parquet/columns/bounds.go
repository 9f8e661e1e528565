package columns

import (
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// maxBound is the number of bytes of a least and greatest value that statistics keep.
const maxBound = 64

// bounded is a type of byte strings whose pages have bounds of limited size. The library keeps those of every page until
// the file ends, and writes them twice; with values of 16 MiB they would be larger than the file.
type bounded struct {
	parquet.Type
	text bool
}

// NewColumnBuffer returns the buffer of a column.
func (t bounded) NewColumnBuffer(column, values int) parquet.ColumnBuffer {
	return boundedBuffer{t.Type.NewColumnBuffer(column, values), t.text}
}

type boundedBuffer struct {
	parquet.ColumnBuffer
	text bool
}

// Page returns the values written so far.
func (b boundedBuffer) Page() parquet.Page { return boundedPage{b.ColumnBuffer.Page(), b.text} }

type boundedPage struct {
	parquet.Page
	text bool
}

// Bounds returns a value that is not above the least of the page, and one that is not below the greatest.
func (p boundedPage) Bounds() (least, most parquet.Value, ok bool) {
	least, most, ok = p.Page.Bounds()
	if !ok {
		return least, most, ok
	}
	if b := least.ByteArray(); len(b) > maxBound {
		b = b[:maxBound]
		if p.text {
			b = wholeRunes(b)
		}
		least = parquet.ByteArrayValue(b)
	}
	if b := most.ByteArray(); len(b) > maxBound {
		most = parquet.ByteArrayValue(above(b, p.text))
	}
	return least, most, ok
}

// above returns a value above b that is short unless b begins with the greatest value there is.
func above(b []byte, text bool) []byte {
	for n := maxBound; n < len(b); n *= 2 {
		var next []byte
		if text {
			next = nextText(wholeRunes(b[:n]))
		} else {
			next = nextBytes(b[:n])
		}
		if next != nil {
			return next
		}
	}
	return b
}

// nextBytes returns the shortest byte string above every string with a prefix, or nil.
func nextBytes(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return append(append([]byte(nil), prefix[:i]...), prefix[i]+1)
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
func nextText(prefix []byte) []byte {
	for b := prefix; len(b) > 0; {
		r, n := utf8.DecodeLastRune(b)
		b = b[:len(b)-n]
		if r++; r == 0xd800 {
			r = 0xe000
		}
		if r <= utf8.MaxRune {
			return utf8.AppendRune(append([]byte(nil), b...), r)
		}
	}
	return nil
}
