package extsort

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// TestRoom checks that rows written in place equal added rows, in memory and on disk, and that a value may change
// until the next row is added.
func TestRoom(t *testing.T) {
	for _, memory := range []int64{16 << 10, 64 << 20} {
		rng := rand.New(rand.NewSource(1))
		s := New(Options{Memory: memory, TempDir: t.TempDir()})
		var want, got []string
		for i := range 300 {
			key, value := fmt.Appendf(nil, "%03d", (i*7)%300), bytes.Repeat([]byte{byte(i)}, rng.Intn(3000))
			want = append(want, fmt.Sprintf("%s %q", key, value))
			switch half := len(value) / 2; i % 3 {
			case 0:
				room, err := s.Room(0, key, len(value))
				if err != nil || len(room) != len(value) || cap(room) != len(value) {
					t.Fatalf("room for %d bytes: %d, %d: %v", len(value), len(room), cap(room), err)
				}
				copy(room, value)
			case 1:
				if err := s.AddParts(0, key, value[:half], nil, value[half:]); err != nil {
					t.Fatal(err)
				}
			case 2:
				if err := s.Add(0, key, value); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := s.Each(func(_ uint64, key, value []byte) error {
			got = append(got, fmt.Sprintf("%s %q", key, value))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("with %d bytes: %d rows, want %d, or others", memory, len(got), len(want))
		}
		if _, err := s.Room(0, nil, 1); err != errSorted {
			t.Errorf("room after Sort: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
