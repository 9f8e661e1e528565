package server

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"kvferry/record"
	"kvferry/redis/state"
)

func TestParseInt(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "-1": -1, "10": 10, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64} {
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
	for in, want := range map[string]float64{"0": 0, "1.5": 1.5, "-3e2": -300, "inf": math.Inf(1), "-Infinity": math.Inf(-1), ".5": .5, "+7": 7, "0x10": 16, "0X1p2": 4, "0e-9": 0} {
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
	for in, want := range map[string]float64{"": 0, " 1.5": 1.5, "1e999": math.Inf(1), "1e-999": 0, "-inf": math.Inf(-1), "2\x00x": 2} {
		if f, err := ParseBound([]byte(in)); err != nil || f != want {
			t.Errorf("%q: %v, %v", in, f, err)
		}
	}
	for _, in := range []string{"x", "nan", "1 "} {
		if f, err := ParseBound([]byte(in)); err != ErrFloat {
			t.Errorf("%q: %v, %v", in, f, err)
		}
	}
}

// TestOption: a word that no command has may be an option of a newer server; all other words are refused.
func TestOption(t *testing.T) {
	var s Server
	for in, want := range map[string]string{"SOONER": "GET SOONER: kvferry does not know this option", "sooner": "GET SOONER: kvferry does not know this option",
		"WEIGHTS": "ERR syntax error", "x": "ERR syntax error", "12": "ERR syntax error", "": "ERR syntax error", "A-B": "ERR syntax error",
		"AWORDOFMORETHANTHIRTYTWOCHARACTERS": "ERR syntax error"} {
		if err := s.Option("GET", []byte(in)); err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
	if got := s.Upper(bytes.Repeat([]byte("x"), 1<<20)); len(got) != maxWord {
		t.Errorf("a long argument is copied: %d bytes", len(got))
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

func TestWords(t *testing.T) {
	if !Is([]byte("maxLen"), "MAXLEN") || Is([]byte("MAXLEN "), "MAXLEN") {
		t.Error("a word in any case")
	}
	var s Server
	if got := s.Upper([]byte("a-Z\xe4{")); string(got) != "A-Z\xe4{" {
		t.Errorf("%q", got)
	}
}

// TestFunctions: a library exists under its name, once.
func TestFunctions(t *testing.T) {
	var s Server
	s.DeleteFunction([]byte("none"))
	s.FlushFunctions()
	lib := func(name, rest string) []byte { return []byte("#!lua name=" + name + "\n" + rest) }
	if err := errors.Join(s.LoadFunction(lib("b", "1"), false), s.LoadFunction(lib("a", "1"), false), s.LoadFunction(lib("b", "2"), true)); err != nil {
		t.Fatal(err)
	}
	for _, code := range [][]byte{lib("a", "3"), []byte("return 1")} {
		var reply *ReplyError
		if err := s.LoadFunction(code, false); !errors.As(err, &reply) {
			t.Errorf("%q: %v", code, err)
		}
	}
	if !s.HasFunction("a") || s.HasFunction("c") {
		t.Error("libraries that are there")
	}
	if got := s.Functions(); !slices.EqualFunc(got, [][]byte{lib("a", "1"), lib("b", "2")}, bytes.Equal) {
		t.Errorf("%q", got)
	}
	if s.DeleteFunction([]byte("a")); len(s.Functions()) != 1 {
		t.Errorf("%q", s.Functions())
	}
	if s.FlushFunctions(); len(s.Functions()) != 0 {
		t.Errorf("%q", s.Functions())
	}
}

func TestFind(t *testing.T) {
	db, err := state.New(state.Options{TempDir: t.TempDir(), Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Server{DB: db}
	key := []byte("k")
	if v, err := s.Find(key, record.Set); v != nil || err != nil {
		t.Error(v, err)
	}
	v, err := s.FindOrMake(key, record.Set)
	if err != nil || v.Type != record.Set || v.Len() != 0 || db.Find(key) != nil {
		t.Fatal(v, err)
	}
	v.AddMember(key)
	db.Store(key, v)
	if v, err := s.FindOrMake(key, record.Set); err != nil || v.Len() != 1 {
		t.Error(v, err)
	}
	if v, err := s.FindOrMake(key, record.Hash); v != nil || err != ErrWrongType {
		t.Error(v, err)
	}
}

func TestErrors(t *testing.T) {
	if got := Unsupported("XADD *", "why").Error(); got != "XADD *: why" {
		t.Error(got)
	}
	if got := Refuse("ERR no").Error(); got != "ERR no" {
		t.Error(got)
	}
}
