package state

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"kvferry/internal/shared/argument"
	"kvferry/record"
)

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
		var reply *argument.ReplyError
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
	db, err := New(Options{TempDir: t.TempDir(), Memory: 1 << 20})
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
	if v, err := s.FindOrMake(key, record.Hash); v != nil || err != argument.ErrWrongType {
		t.Error(v, err)
	}
}

func TestErrors(t *testing.T) {
	if got := Unsupported("XADD *", "why").Error(); got != "XADD *: why" {
		t.Error(got)
	}
	if got := argument.Refuse("ERR no").Error(); got != "ERR no" {
		t.Error(got)
	}
}

func TestUpper(t *testing.T) {
	var s Server
	if got := s.Upper([]byte("a-Z\xe4{")); string(got) != "A-Z\xe4{" {
		t.Errorf("%q", got)
	}
}
