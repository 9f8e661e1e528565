package argument

import (
	"math"
	"slices"
	"testing"
)

func TestParseInt(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "-1": -1, "10": 10, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64} {
		if n, err := ParseInt([]byte(in)); err != nil || n != want {
			t.Errorf("%s: %d, %v", in, n, err)
		}
	}
	for _, in := range []string{"", " 1", "1 ", "+1", "01", "-0", "00", "1.0", "0x1", "1_0", "9223372036854775808", "123456789012345678901"} {
		if n, err := ParseInt([]byte(in)); err != ErrInteger {
			t.Errorf("%q: %d, %v", in, n, err)
		}
	}
	if n, err := ParseInts([]byte("1"), []byte("-2")); err != nil || !slices.Equal(n, []int64{1, -2}) {
		t.Error(n, err)
	}
	if n, err := ParseInts([]byte("1"), []byte("x")); err != ErrInteger {
		t.Error(n, err)
	}
}

func TestParseFloat(t *testing.T) {
	for in, want := range map[string]float64{"0": 0, "1.5": 1.5, "-3e2": -300, "inf": math.Inf(1), "-Infinity": math.Inf(-1),
		".5": .5, "+7": 7, "0x10": 16, "0X1p2": 4, "0e-9": 0} {
		if f, err := ParseFloat([]byte(in)); err != nil || f != want {
			t.Errorf("%s: %v, %v", in, f, err)
		}
	}
	for _, in := range []string{"", " 1", "1\n", "nan", "1_0", "1e999", "1e-999", "1x"} {
		if f, err := ParseFloat([]byte(in)); err != ErrFloat {
			t.Errorf("%q: %v, %v", in, f, err)
		}
	}
}

// TestParseBound: an end of a range is parsed more leniently than a score.
func TestParseBound(t *testing.T) {
	for in, want := range map[string]float64{"": 0, " 1.5": 1.5, "1e999": math.Inf(1), "1e-999": 0, "-inf": math.Inf(-1),
		"2\x00x": 2} {
		if f, err := ParseBound([]byte(in)); err != nil || f != want {
			t.Errorf("%q: %v, %v", in, f, err)
		}
	}
	for _, in := range []string{"x", "nan", "1 ", " ", "\n\x001"} {
		if f, err := ParseBound([]byte(in)); err != ErrFloat {
			t.Errorf("%q: %v, %v", in, f, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for _, c := range []struct{ start, end, n, from, to int64 }{
		{0, -1, 5, 0, 5}, {1, 2, 5, 1, 3}, {-2, -1, 5, 3, 5}, {-9, 9, 5, 0, 5}, {3, 2, 5, 0, 0}, {5, 9, 5, 0, 0}, {0, -9, 5, 0, 0}, {0, 0, 0, 0, 0},
	} {
		if from, to := Span(c.start, c.end, c.n); from != c.from || to != c.to {
			t.Errorf("%+v: %d, %d", c, from, to)
		}
	}
}

func TestIs(t *testing.T) {
	if !Is([]byte("maxLen"), "MAXLEN") || Is([]byte("MAXLEN "), "MAXLEN") {
		t.Error("a word in any case")
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		lo, hi string
		in     float64
		want   bool
	}{{"1", "2", 1, true}, {"(1", "2", 1, false}, {"1", "(2", 2, false}, {"-inf", "+inf", 7, true}, {"2", "1", 1.5, false}} {
		b, err := ParseScores([]byte(c.lo), []byte(c.hi))
		if err != nil || b.HasScore(c.in) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []struct {
		lo, hi, in string
		want       bool
	}{{"[a", "[c", "a", true}, {"(a", "[c", "a", false}, {"-", "(c", "c", false}, {"-", "+", "x", true}, {"+", "-", "x", false}} {
		b, err := ParseMembers([]byte(c.lo), []byte(c.hi))
		if err != nil || b.HasMember([]byte(c.in)) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := ParseScores([]byte("x"), []byte("1")); err == nil {
		t.Error("no number")
	}
	if _, err := ParseMembers([]byte("a"), []byte("+")); err == nil {
		t.Error("no kind of end")
	}
}

func TestParseID(t *testing.T) {
	for in, want := range map[string][2]uint64{"5": {5, 9}, "5-3": {5, 3}, " +1-0": {1, 0},
		"18446744073709551615-1": {math.MaxUint64, 1}} {
		if ms, seq, err := ParseID([]byte(in), 9); err != nil || ms != want[0] || seq != want[1] {
			t.Errorf("%q: %d-%d, %v", in, ms, seq, err)
		}
	}
	for _, in := range []string{"", "-", "1-", "x", "1-2-3", "18446744073709551616"} {
		if _, _, err := ParseID([]byte(in), 0); err != ErrID {
			t.Errorf("%q: %v", in, err)
		}
	}
}
