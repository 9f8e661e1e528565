package keylanes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kvferry/internal/shared/keylanes"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
)

// TestFirst walks all user keys by First, with fewer lanes open than there are, and sees each row once.
func TestFirst(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	m := memstore.New().Dir("x")
	want := map[string]int{}
	for range 400 {
		key := make([]byte, 1+rnd.IntN(20))
		for i := range key {
			key[i] = "ab\xff"[rnd.IntN(3)]
		}
		for i := range 1 + rnd.IntN(3) {
			m.Put("rows", fmt.Appendf(nil, "%c%s.%d", len(key), key, i), nil)
		}
		want[string(key)] = 0
	}
	d := keylanes.NewDirectory(m.Keyspaces()[0], keylanes.Layout{PrefixLen: 1, MinRest: 1,
		AppendPrefix: func(dst []byte, klen int) []byte { return append(dst, byte(klen)) },
		Parse:        func(raw []byte) (int, bool) { return int(raw[0]), true }})
	d.MaxOpen = 4
	s, err := d.Open(nil, nil, 1<<20, func(class record.Class, key, _ []byte, _ record.Place) {
		t.Errorf("stray %v %q", class, key)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var keys []string
	for {
		key, ok, err := s.First()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		user := string(key)
		keys = append(keys, user)
		if err := s.Seek([]byte(user)); err != nil {
			t.Fatal(err)
		}
		for {
			_, _, ok, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			want[user]++
		}
		if len(keys) > 2*len(want) {
			t.Fatal("the keys have no end")
		}
	}
	if !slices.IsSorted(keys) || len(keys) != len(want) {
		t.Errorf("%d keys, in order %t; want %d", len(keys), slices.IsSorted(keys), len(want))
	}
	for key, rows := range want {
		if rows == 0 {
			t.Errorf("%q: no rows", key)
		}
	}
	if err := s.Finish(); err != nil {
		t.Error(err)
	}
}
