package pack

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"kvferry/record"
)

// ParseInt parses the canonical decimal text of a 64-bit integer.
func ParseInt(s []byte) (int64, bool) {
	digits := s
	if len(s) > 0 && s[0] == '-' {
		digits = s[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0') // 19 digits do not overflow
	}
	if len(digits) < len(s) {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

// AppendScore appends a score as text that strtod reads back.
func AppendScore(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}

// Score returns an item as a zset score.
func (e *Item) Score() (float64, error) {
	if e.IsInt {
		return float64(e.N), nil
	}
	return ParseScore(e.Text)
}

// ParseScore parses a score like C's strtod, without trailing bytes.
func ParseScore(b []byte) (float64, error) {
	if f, ok := shortDecimal(b); ok {
		return f, nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || bytes.IndexByte(b, '_') >= 0 {
		return 0, fmt.Errorf("%s is not a score", record.Quote(b))
	}
	return f, nil
}

// shortDecimal parses a short decimal: digits and point fit a quotient of two exact floats, which is correctly rounded.
// Most scores are short, and strconv takes four times as long.
func shortDecimal(b []byte) (float64, bool) {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 16 {
		return 0, false
	}
	var n uint64
	point := -1
	for i, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			n = n*10 + uint64(c-'0')
		case c == '.' && point < 0 && i > 0 && i < len(digits)-1:
			point = i
		default:
			return 0, false
		}
	}
	if n >= 1<<53 {
		return 0, false
	}
	f := float64(n)
	if point >= 0 {
		f /= powers[len(digits)-1-point]
	}
	if len(digits) < len(b) {
		f = -f
	}
	return f, true
}

// powers holds the powers of ten.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}
