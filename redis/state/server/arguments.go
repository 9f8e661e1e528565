package server

import (
	"math"
	"strconv"
	"strings"
)

// ParseInt reads an integer as Redis does: canonical decimal of 64 bits, nothing around it.
func ParseInt(b []byte) (int64, error) {
	if len(b) == 0 || len(b) > 20 {
		return 0, ErrInteger
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || len(b) > 1 && (b[0] == '0' || b[0] == '+' || b[0] == '-' && b[1] == '0') || b[0] == '+' {
		return 0, ErrInteger
	}
	return n, nil
}

// ParseFloat reads a score as Redis does, with strtod: no blanks, no NaN, nothing beyond the range.
func ParseFloat(b []byte) (float64, error) {
	s := string(b)
	if strings.ContainsAny(s, "_ \t\n\v\f\r") {
		return 0, ErrFloat
	}
	if lower := strings.ToLower(s); strings.Contains(lower, "0x") && !strings.Contains(lower, "p") {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return 0, ErrFloat
	}
	if f == 0 && strings.ContainsAny(mantissa(s), "123456789") {
		return 0, ErrFloat // too small
	}
	return f, nil
}

// mantissa is a number without its exponent.
func mantissa(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i]
	}
	return s
}

// Span turns the start and end of a range, which may count from the end, into indexes of n elements: from <= i < to.
func Span(start, end, n int64) (from, to int64) {
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end += n
	}
	end = min(end, n-1)
	if start > end || start >= n {
		return 0, 0
	}
	return start, end + 1
}

// Upper returns a word in upper case, until the next is asked for.
func (s *Server) Upper(word []byte) []byte {
	s.word = s.word[:0]
	for _, b := range word {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		s.word = append(s.word, b)
	}
	return s.word
}

// Is reports whether an argument is a word, in any case.
func Is(arg []byte, word string) bool { return strings.EqualFold(string(arg), word) }

// ParseInts reads integers.
func ParseInts(args ...[]byte) ([]int64, error) {
	out := make([]int64, len(args))
	for i, a := range args {
		n, err := ParseInt(a)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}
