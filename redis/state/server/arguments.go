package server

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
	b, _, _ = bytes.Cut(b, []byte{0})
	if b = bytes.TrimLeft(b, " \t\n\v\f\r"); len(b) == 0 {
		return 0, nil
	}
	f, err := ParseFloat(b)
	if errors.Is(err, ErrFloat) {
		if g, perr := strconv.ParseFloat(string(b), 64); errors.Is(perr, strconv.ErrRange) || perr == nil && g == 0 {
			return g, nil
		}
	}
	return f, err
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

// maxWord is more than the length of any word that a command knows.
const maxWord = 64

// Upper returns a word in upper case, valid until the next call; of a long argument only the first bytes.
func (s *Server) Upper(word []byte) []byte {
	s.word = s.word[:0]
	for _, b := range word[:min(len(word), maxWord)] {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		s.word = append(s.word, b)
	}
	return s.word
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

// optionWords are the names of options of all commands.
var optionWords = words(`NX XX GT LT CH INCR GET EX PX EXAT PXAT KEEPTTL PERSIST IFEQ IFNE IFDEQ IFDNE FNX FXX FIELDS REPLACE
	ABSTTL IDLETIME FREQ DB ASYNC SYNC LIMIT BY ASC DESC ALPHA STORE STOREDIST WEIGHTS AGGREGATE SUM MIN MAX BYSCORE BYLEX REV
	WITHSCORES FROMMEMBER FROMLONLAT BYRADIUS BYBOX COUNT ANY WITHDIST WITHHASH WITHCOORD MAXLEN MINID NOMKSTREAM MKSTREAM
	ENTRIESREAD ENTRIESADDED MAXDELETEDID IDLE TIME RETRYCOUNT FORCE JUSTID LASTID KEEPREF DELREF ACKED IDS IDMP IDMPAUTO
	APPEND FLUSH LEFT RIGHT BEFORE AFTER AND OR XOR NOT SET OVERFLOW INCRBY KM FT MI`)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// Option returns the error for an argument in place of an option that the command does not have. A word that
// is no option of any known command may belong to a newer server; a server refuses all other arguments.
func (s *Server) Option(command string, arg []byte) error {
	if len(arg) < 2 || len(arg) > 32 || optionWords[string(s.Upper(arg))] {
		return ErrSyntax
	}
	for _, b := range s.Upper(arg) {
		if b < 'A' || b > 'Z' {
			return ErrSyntax
		}
	}
	return Unsupported(command+" "+string(s.Upper(arg)), "kvferry does not know this option")
}
