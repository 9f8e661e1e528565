package keys

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/cbor"
)

// errCBOR means that a document packed as CBOR has an item that JSON has not, or is too large.
var errCBOR = argument.Refuse("ERR kvferry does not read this document: its CBOR has bytes, tags, infinities or more than 64 MiB of text")

const maxDepth = 1000

// fromCBOR returns the text of a document packed as CBOR, which is one valid item.
func fromCBOR(b []byte) ([]byte, error) {
	text, rest, err := appendItem(nil, b, 0)
	if err == nil && len(rest) > 0 {
		err = errCBOR
	}
	return text, err
}

var errShort = errors.New("the document ends too early")

// appendItem appends the first item of b.
func appendItem(dst, b []byte, depth int) (text, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errShort
	}
	if depth > maxDepth || len(dst) > maxDocument {
		return nil, nil, errCBOR
	}
	h, rest, ok := cbor.Cut(b)
	if !ok {
		return nil, nil, errShort
	}
	n := h.Argument
	switch h.Major {
	case 0:
		return strconv.AppendUint(dst, n, 10), rest, nil
	case 1:
		if n > math.MaxInt64 {
			return nil, nil, errCBOR
		}
		return strconv.AppendInt(dst, -1-int64(n), 10), rest, nil
	case cbor.Text:
		return appendText(dst, rest, n, h.Open())
	case cbor.Array, cbor.Map:
		return appendItems(dst, rest, n, h.Open(), h.Major == cbor.Map, depth)
	case 7:
		dst, ok := appendSimple(dst, h.Info, n)
		if !ok {
			return nil, nil, errCBOR
		}
		return dst, rest, nil
	}
	return nil, nil, errCBOR
}

// appendText appends a string: n bytes, or strings up to a break.
func appendText(dst, b []byte, n uint64, pieces bool) (text, rest []byte, err error) {
	var s []byte
	for !pieces || len(b) > 0 && b[0] != cbor.Break {
		if pieces {
			h, rest, ok := cbor.Cut(b)
			if !ok {
				return nil, nil, errShort
			}
			n, b = h.Argument, rest
		}
		if n > uint64(len(b)) {
			return nil, nil, errShort
		}
		if s, b = append(s, b[:n]...), b[n:]; !pieces {
			break
		}
	}
	if pieces {
		if len(b) == 0 {
			return nil, nil, errShort
		}
		b = b[1:]
	}
	if !utf8.Valid(s) {
		return nil, nil, errCBOR
	}
	return appendQuoted(dst, s), b, nil
}

// appendQuoted appends a string as RedisJSON and Kvrocks write it: they escape only what JSON requires, and Kvrocks DEL.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch i := strings.IndexByte("\"\\\b\f\n\r\t", c); {
		case i >= 0:
			dst = append(dst, '\\', `"\bfnrt`[i])
		case c < ' ' || c == 0x7f:
			dst = fmt.Appendf(dst, `\u%04X`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// appendItems appends an array, or an object.
func appendItems(dst, b []byte, n uint64, open, object bool, depth int) (text, rest []byte, err error) {
	ends := "[]"
	if object {
		ends = "{}"
	}
	dst = append(dst, ends[0])
	for i := uint64(0); open || i < n; i++ {
		if open && len(b) > 0 && b[0] == cbor.Break {
			b = b[1:]
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if object {
			if len(b) > 0 && b[0]>>5 != cbor.Text {
				return nil, nil, errCBOR
			}
			if dst, b, err = appendItem(dst, b, depth+1); err != nil {
				return nil, nil, err
			}
			dst = append(dst, ':')
		}
		if dst, b, err = appendItem(dst, b, depth+1); err != nil {
			return nil, nil, err
		}
	}
	return append(dst, ends[1]), b, nil
}

// appendSimple appends a literal or a float.
func appendSimple(dst []byte, info byte, n uint64) ([]byte, bool) {
	var f float64
	switch info {
	case 20, 21:
		return strconv.AppendBool(dst, info == 21), true
	case 22:
		return append(dst, "null"...), true
	case 25:
		f = halfFloat(uint16(n))
	case 26:
		f = float64(math.Float32frombits(uint32(n)))
	case 27:
		f = math.Float64frombits(n)
	default:
		return nil, false
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, false
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, f+0, 'g', -1, 64) // Kvrocks shows -0.0 as 0.0
	if kindOf(dst[at:]) == "integer" {
		dst = append(dst, ".0"...)
	}
	return dst, true
}

// halfFloat converts a float of 16 bits.
func halfFloat(b uint16) float64 {
	exp, frac := int(b>>10&31), float64(b&1023)
	f := math.Ldexp(frac, -24)
	switch {
	case exp == 31 && frac == 0:
		f = math.Inf(1)
	case exp == 31:
		f = math.NaN()
	case exp > 0:
		f = math.Ldexp(1024+frac, exp-25)
	}
	if b>>15 != 0 {
		f = -f
	}
	return f
}
