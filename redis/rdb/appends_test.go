package rdb

import (
	"math"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
)

// TestAppends: lengths, strings, scores and headers, byte by byte, at the bounds of every encoding.
func TestAppends(t *testing.T) {
	for n, want := range map[uint64]string{0: "00", 63: "3f", 64: "4040", 16383: "7fff", 16384: "80 00004000", math.MaxUint32: "80 ffffffff",
		math.MaxUint32 + 1: "81 0000000100000000"} {
		b := AppendLen([]byte("x"), n)
		if string(b) != "x"+string(formattest.Unhex(t, want)) {
			t.Errorf("length %d: %x, want %s", n, b[1:], want)
		}
		var in input
		in.reset(b, 0)
		if in.byte("x") != 'x' || in.len("n") != n || in.left() != 0 || in.err != nil {
			t.Errorf("length %d is not read: %v", n, in.err)
		}
	}
	for s, want := range map[string]string{
		"": "00", "a": "01 61", "-": "01 2d", "0": "c000", "127": "c07f", "128": "c1 8000", "-128": "c080", "-129": "c1 7fff",
		"32767": "c1 ff7f", "32768": "c2 00800000", "-32768": "c1 0080", "-32769": "c2 ff7fffff",
		"2147483647": "c2 ffffff7f", "2147483648": "0a 32313437343833363438", "-2147483648": "c2 00000080", "-2147483649": "0b 2d32313437343833363439",
		"07": "02 3037", "-0": "02 2d30", "1a": "02 3161", "+1": "02 2b31",
	} {
		b := AppendString([]byte("x"), []byte(s))
		if string(b) != "x"+string(formattest.Unhex(t, want)) {
			t.Errorf("%q: %x, want %s", s, b[1:], want)
		}
		var in input
		in.reset(b, 0)
		in.byte("x")
		if got, _ := in.str("s", nil); string(got) != s || in.left() != 0 || in.err != nil {
			t.Errorf("%q is read as %q: %v", s, got, in.err)
		}
	}
	for f, want := range map[float64]string{0: "\x010", -1.5: "\x04-1.5", math.Inf(1): "\xfe", math.Inf(-1): "\xff", 0.1: "\x130.10000000000000001"} {
		if got := string(AppendTextScore([]byte("x"), f)); got != "x"+want {
			t.Errorf("score %v: %q, want %q", f, got, want)
		}
	}
	for name, want := range map[string]string{"6": "", "7": "redis-ver 3.2.0", "8": "redis-ver 4.0.0", "9": "redis-ver 5.0.0",
		"10": "redis-ver 7.0.0", "11": "redis-ver 7.2.0", "12": "redis-ver 7.4.0", "valkey80": "valkey-ver 9.0.0"} {
		v, err := ParseVersion(name)
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			name, version, _ := strings.Cut(want, " ")
			want = string(AppendAux(AppendAux(AppendAux(nil, name, version), "redis-bits", "64"), "ctime", "77"))
		}
		if got := string(AppendHead(nil, v, 77)); got[9:] != want || len(got) != 9+len(want) {
			t.Errorf("version %s: %q, want %q", name, got, want)
		}
	}
}
