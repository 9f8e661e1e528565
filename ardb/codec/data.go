package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"kvferry/record"
)

// Tag is the first byte of a data element.
type Tag byte

// Tags.
const (
	TagNil   Tag = 0
	TagInt   Tag = 1
	TagFloat Tag = 2
	TagCStr  Tag = 3 // 0.9.0 and 0.9.1 wrote either
	TagText  Tag = 4
)

// maxIntText is the longest text that the server tries to read as an integer.
const maxIntText = 21

// maxFloatText is the longest text of a float: sign, 17 digits, point, e, sign and three digits.
const maxFloatText = 24

// Data is a decoded data element. Text is a view of the bytes it was decoded from.
type Data struct {
	Tag  Tag
	Int  int64   // TagInt
	F    float64 // TagFloat
	Text []byte  // TagText and TagCStr
}

// IntData makes an integer element.
func IntData(v int64) Data { return Data{Tag: TagInt, Int: v} }

// FloatData makes a float element.
func FloatData(f float64) Data { return Data{Tag: TagFloat, F: f} }

// TextData makes a string element.
func TextData(s []byte) Data { return Data{Tag: TagText, Text: s} }

// CanonData returns the element that the server makes of a string where it tries integers first.
func CanonData(s []byte) Data {
	if v, ok := CanonicalInt(s); ok {
		return IntData(v)
	}
	return TextData(s)
}

// IsText reports whether d is a string.
func (d *Data) IsText() bool { return d.Tag == TagText || d.Tag == TagCStr }

// IsNumber reports whether d is an integer or a float.
func (d *Data) IsNumber() bool { return d.Tag == TagInt || d.Tag == TagFloat }

// Number returns d as a float64, as the server compares mixed numbers.
func (d *Data) Number() float64 {
	if d.Tag == TagInt {
		return float64(d.Int)
	}
	return d.F
}

// Int64 is the server's GetInt64: 0 unless d is an integer.
func (d Data) Int64() int64 {
	if d.Tag == TagInt {
		return d.Int
	}
	return 0
}

// Float64 is the server's GetFloat64: 0 unless d is a number.
func (d Data) Float64() float64 {
	if d.IsNumber() {
		return d.Number()
	}
	return 0
}

// uvarint decodes a VarUInt at the start of b; n is 0 when it is cut off and negative when it does not fit.
func uvarint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// SplitData decodes the element at the start of b and returns its width, 0 when b is malformed.
func SplitData(b []byte) (d Data, n int) {
	if len(b) == 0 {
		return d, 0
	}
	d.Tag = Tag(b[0])
	if d.Tag == TagText && len(b) > 1 && b[1] < 0x80 && 2+int(b[1]) <= len(b) {
		n = 2 + int(b[1])
		d.Text = b[2:n:n]
		return d, n
	}
	if d.Tag == TagNil {
		return d, 1
	}
	if d.Tag > TagText {
		return d, 0
	}
	u, w := uvarint(b[1:])
	if w <= 0 {
		return d, 0
	}
	switch d.Tag {
	case TagInt:
		d.Int = unzigzag(u)
	case TagFloat:
		d.F = math.Float64frombits(uint64(unzigzag(u)))
	default:
		b = b[1+w:]
		if u > uint64(len(b)) {
			return d, 0
		}
		d.Text = b[:u:u]
		return d, 1 + w + int(u)
	}
	return d, 1 + w
}

// WholeText returns the string encoded by b. It returns false for other elements.
func WholeText(b []byte) ([]byte, bool) {
	if len(b) < 2 || b[0] != byte(TagText) {
		return nil, false
	}
	n, w := uint64(b[1]), 1
	if n >= 0x80 {
		n, w = uvarint(b[1:])
	}
	if w <= 0 || n != uint64(len(b)-1-w) {
		return nil, false
	}
	return b[1+w : len(b) : len(b)], true
}

// decodeData decodes the element at the start of b, or returns why it cannot; off is the offset of b.
func decodeData(b []byte, off int, field string) (Data, int, error) {
	d, n := SplitData(b)
	if n > 0 {
		return d, n, nil
	}
	if len(b) == 0 {
		return d, 0, record.Short(off, field, 1, 0)
	}
	if d.Tag > TagText {
		return d, 0, record.Unknown(off, field, fmt.Sprintf("tag %d", d.Tag))
	}
	u, w := uvarint(b[1:])
	switch {
	case w < 0:
		return d, 0, &record.CorruptError{Off: int64(off + 1), Field: field, Err: fmt.Errorf("number of more than 64 bits")}
	case w == 0:
		return d, 0, record.Short(off+1, field, len(b), len(b)-1)
	}
	return d, 0, &record.CorruptError{Off: int64(off + 1 + w), Field: field,
		Err: fmt.Errorf("need %s bytes, have %s: %w", record.Number(u), record.Number(len(b)-1-w), record.ErrShort)}
}

// AppendData appends an element as the current server writes it.
func AppendData(dst []byte, d Data) []byte {
	switch d.Tag {
	case TagInt:
		return AppendInt(dst, d.Int)
	case TagFloat:
		return AppendFloat(dst, d.F)
	case TagText, TagCStr:
		return AppendText(dst, d.Text)
	}
	return append(dst, byte(TagNil))
}

// AppendTail appends the bytes after the user key in the key of a row with one element.
func AppendTail(dst []byte, k Kind, d Data) []byte { return AppendData(append(dst, byte(k), 1), d) }

// AppendInt appends an integer element.
func AppendInt(dst []byte, v int64) []byte {
	return binary.AppendUvarint(append(dst, byte(TagInt)), zigzag(v))
}

// AppendFloat appends a float element: its bits as an integer.
func AppendFloat(dst []byte, f float64) []byte {
	return binary.AppendUvarint(append(dst, byte(TagFloat)), zigzag(int64(math.Float64bits(f))))
}

// AppendText appends a string element.
func AppendText(dst, s []byte) []byte { return append(AppendTextHead(dst, len(s)), s...) }

// AppendTextHead appends the encoding of a string of n bytes without the bytes themselves.
func AppendTextHead(dst []byte, n int) []byte {
	return binary.AppendUvarint(append(dst, byte(TagText)), uint64(n))
}

// AppendCanon appends a string as an integer if it is a canonical one, else as a string.
func AppendCanon(dst, s []byte) []byte {
	if v, ok := CanonicalInt(s); ok {
		return AppendInt(dst, v)
	}
	return AppendText(dst, s)
}

// AppendNumber appends a string like AppendCanon, but as a float if the server would reply with exactly this
// string: a counter stays a number, as INCRBYFLOAT and HINCRBYFLOAT require. The reply is the same.
func AppendNumber(dst, s []byte) []byte {
	if f, ok := servedFloat(s); ok {
		return AppendFloat(dst, f)
	}
	return AppendCanon(dst, s)
}

// servedFloat returns the finite float for which the server replies s, unless s is an integer.
func servedFloat(s []byte) (float64, bool) {
	if len(s) < 3 || len(s) > maxFloatText || s[0] != '-' && (s[0] < '0' || s[0] > '9') ||
		bytes.IndexByte(s, '.') < 0 && bytes.IndexByte(s, 'e') < 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		return 0, false
	}
	var buf [maxFloatText]byte
	return f, bytes.Equal(appendFloatText(buf[:0], f), s)
}

// CanonicalInt reads a string that is the decimal form of an int64 as the server prints it: no plus
// sign, no leading zero, no -0, no blanks.
func CanonicalInt(s []byte) (int64, bool) {
	if len(s) == 0 || len(s) >= maxIntText || s[0] > '9' {
		return 0, false
	}
	digits, negative := s, s[0] == '-'
	if negative {
		digits = s[1:]
	}
	if len(digits) == 0 || digits[0] < '1' || digits[0] > '9' {
		return 0, len(s) == 1 && s[0] == '0'
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' || u > (math.MaxUint64-9)/10 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	switch {
	case !negative && u <= math.MaxInt64:
		return int64(u), true
	case negative && u <= 1<<63:
		return -int64(u), true
	}
	return 0, false
}

// AppendServed appends the text with which the server replies for an element. For the smallest int64 the
// server replies "-9"; AppendServed appends the correct text.
func AppendServed(dst []byte, d Data) []byte {
	switch d.Tag {
	case TagInt:
		return strconv.AppendInt(dst, d.Int, 10)
	case TagFloat:
		return appendFloatText(dst, d.F)
	}
	return append(dst, d.Text...)
}

// appendFloatText prints a float as the server does: integral ones below 2^52 as an integer, others with
// C's %.17g.
func appendFloatText(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		if math.Signbit(f) {
			return append(dst, "-nan"...)
		}
		return append(dst, "nan"...)
	case f == math.Trunc(f) && math.Abs(f) < 1<<52:
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return appendG17(dst, f)
}

// appendG17 is C's %.17g: 17 significant digits without trailing zeros, with an exponent below 1e-4 and
// from 1e17 on.
func appendG17(dst []byte, f float64) []byte {
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', 16, 64)
	at := bytes.LastIndexByte(dst[start:], 'e') + start
	exp, err := strconv.Atoi(string(dst[at+1:]))
	if err != nil {
		return dst
	}
	if exp >= -4 && exp < 17 {
		dst = strconv.AppendFloat(dst[:start], f, 'f', 16-exp, 64)
		return trimZeros(dst, start)
	}
	suffix := string(dst[at:])
	return append(trimZeros(dst[:at], start), suffix...)
}

func trimZeros(dst []byte, start int) []byte {
	if bytes.IndexByte(dst[start:], '.') < 0 {
		return dst
	}
	return bytes.TrimRight(bytes.TrimRight(dst, "0"), ".")
}

// Compare orders elements as the server does: nil, numbers, strings. Integers compare by the sign of
// their difference, which wraps; a float with any number as float64; NaN equals every number.
func (d *Data) Compare(e *Data) int {
	if a, b := d.rank(), e.rank(); a != b {
		return a - b
	}
	switch {
	case d.Tag == TagNil:
		return 0
	case d.IsText():
		return bytes.Compare(d.Text, e.Text)
	case d.Tag == TagInt && e.Tag == TagInt:
		return signOf(int64(uint64(d.Int) - uint64(e.Int)))
	}
	a, b := d.Number(), e.Number()
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (d *Data) rank() int {
	switch d.Tag {
	case TagNil:
		return 0
	case TagInt, TagFloat:
		return 1
	}
	return 2
}

func signOf(v int64) int {
	switch {
	case v < 0:
		return -1
	case v > 0:
		return 1
	}
	return 0
}

// Widen extends the encoded bounds by an element; empty bounds contain no element.
func Widen(least, most []byte, d Data) (_, _ []byte) {
	if len(most) == 0 {
		return AppendData(least[:0], d), AppendData(most, d)
	}
	if hi, _ := SplitData(most); d.Compare(&hi) > 0 {
		return least, AppendData(most[:0], d)
	}
	if lo, _ := SplitData(least); d.Compare(&lo) < 0 {
		return AppendData(least[:0], d), most
	}
	return least, most
}
