package state

import (
	"math"
	"strconv"
	"strings"
)

// parseInt reads an integer as Redis does: canonical decimal of 64 bits, nothing around it.
func parseInt(b []byte) (int64, error) {
	if len(b) == 0 || len(b) > 20 {
		return 0, errInteger
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || len(b) > 1 && (b[0] == '0' || b[0] == '+' || b[0] == '-' && b[1] == '0') || b[0] == '+' {
		return 0, errInteger
	}
	return n, nil
}

// parseFloat reads a score as Redis does, with strtod: no blanks, no NaN, nothing beyond the range.
func parseFloat(b []byte) (float64, error) {
	s := string(b)
	if strings.ContainsAny(s, "_ \t\n\v\f\r") {
		return 0, errFloat
	}
	if lower := strings.ToLower(s); strings.Contains(lower, "0x") && !strings.Contains(lower, "p") {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return 0, errFloat
	}
	if f == 0 && strings.ContainsAny(mantissa(s), "123456789") {
		return 0, errFloat // too small
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

// span turns the start and end of a range, which may count from the end, into indexes of n elements: from <= i < to.
func span(start, end, n int64) (from, to int64) {
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

// is reports whether an argument is a word, in any case.
func is(arg []byte, word string) bool { return strings.EqualFold(string(arg), word) }

// integers parses arguments.
func integers(args ...[]byte) ([]int64, error) {
	out := make([]int64, len(args))
	for i, a := range args {
		n, err := parseInt(a)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}
