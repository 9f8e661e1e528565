package state

import (
	"fmt"
	"testing"

	"kvferry/record"
)

// TestWeigh: the keys cut a database into parts of similar size, whose sum is the size of all its keys.
func TestWeigh(t *testing.T) {
	s, err := New(Options{TempDir: t.TempDir(), Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 1000 {
		v := s.Make(record.Set)
		for j := range 1 + i%9 {
			v.AddMember(fmt.Append(nil, j))
		}
		s.Store(fmt.Appendf(nil, "set:%03d", i), v)
	}
	s.Store([]byte("z"), s.Make(record.String))
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 7, 100, 5000} {
		keys, err := s.Weigh(0, record.Of(record.Set), n)
		if err != nil || len(keys) == 0 || len(keys) > n || string(keys[0].Key) != "set:000" {
			t.Fatalf("%d of %d keys: %v", len(keys), n, err)
		}
		var sum int64
		for _, k := range keys {
			sum += k.Bytes
		}
		if want := s.Sizes(0).Bytes[record.Set]; sum != want {
			t.Errorf("%d keys stand for %d bytes, want %d", len(keys), sum, want)
		}
	}
	if keys, err := s.Weigh(3, record.Of(record.Set), 9); keys != nil || err != nil {
		t.Errorf("a database without keys has %d: %v", len(keys), err)
	}
}
