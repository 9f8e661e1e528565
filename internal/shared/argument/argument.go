// Package argument parses arguments of Redis commands as servers do, and has their error replies.
package argument

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
)

// ParseInt parses an integer as Redis does: canonical decimal of 64 bits, without surrounding bytes.
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

// ParseFloat parses a score as Redis does, with strtod: no blanks, no NaN, no value out of range.
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

// ParseBound parses an end of a range of scores as Redis does, with strtod alone: an empty one is 0, and a
// value out of range is infinite.
func ParseBound(b []byte) (float64, error) {
	b, f, err := ParsePrefix(b)
	if errors.Is(err, ErrFloat) {
		if g, perr := strconv.ParseFloat(string(b), 64); errors.Is(perr, strconv.ErrRange) || perr == nil && g == 0 {
			return g, nil
		}
	}
	return f, err
}

// ParsePrefix parses a number as strtod does: it ends at a zero byte, space may precede it, and an empty text is 0. Space
// alone is no number. It returns the bytes that it parsed.
func ParsePrefix(b []byte) (number []byte, f float64, err error) {
	if b, _, _ = bytes.Cut(b, []byte{0}); len(b) == 0 {
		return b, 0, nil
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	f, err = ParseFloat(b)
	return b, f, err
}

// mantissa is a number without its exponent.
func mantissa(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i]
	}
	return s
}

// Span converts the start and end of a range, which may count from the end, to indexes of n elements: from <=
// i < to.
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

// Is reports whether an argument is a word, in any case.
func Is(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

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

// ReplyError is an error reply of a server. The command has changed no keys.
type ReplyError struct{ Text string }

func (e *ReplyError) Error() string { return e.Text }

// Refuse returns an error reply.
func Refuse(text string) error { return &ReplyError{text} }

// Answers that several commands give.
var (
	ErrWrongType = Refuse("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrSyntax    = Refuse("ERR syntax error")
	ErrInteger   = Refuse("ERR value is not an integer or out of range")
	ErrFloat     = Refuse("ERR value is not a valid float")
	ErrRange     = Refuse("ERR index out of range")
	ErrNoKey     = Refuse("ERR no such key")
	ErrArgs      = Refuse("ERR wrong number of arguments")
)

// ErrID is the reply to an argument that is no id of a stream's entry.
var ErrID = Refuse("ERR Invalid stream ID specified as stream command argument")

// ParseID reads ms-seq, or ms alone, whose sequence number is then seq.
func ParseID(b []byte, seq uint64) (ms, n uint64, err error) {
	first, rest, two := bytes.Cut(b, []byte("-"))
	n = seq
	if ms, err = ParseIDPart(first); err == nil && two {
		n, err = ParseIDPart(rest)
	}
	if err != nil {
		return 0, 0, ErrID
	}
	return ms, n, nil
}

// ParseIDPart reads a part of an id as Redis does, with strtoull.
func ParseIDPart(b []byte) (uint64, error) {
	if len(b) > maxID {
		return 0, ErrID
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	if len(b) > 1 && b[0] == '+' {
		b = b[1:]
	}
	return strconv.ParseUint(string(b), 10, 64)
}

// maxID is the longest id that servers read.
const maxID = 127
