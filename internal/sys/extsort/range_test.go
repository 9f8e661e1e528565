package extsort

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// rangeOf collects the keys of a range.
func rangeOf(t *testing.T, s *Sorter, lo, hi []byte) (keys []string) {
	t.Helper()
	it, err := s.Range(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, key, value, err := it.Next()
		if err == io.EOF {
			return keys
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(value, key) {
			t.Fatalf("value %.20q of key %.20q", value, key)
		}
		keys = append(keys, string(key))
	}
}

// TestRange checks that ranges contain the rows between their bounds, in order, from memory or runs, also when read
// concurrently. Keys share prefixes longer than the keys of the index.
func TestRange(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 2*maxMark))
	for _, memory := range []int64{64 << 20, 64 << 10} {
		s := New(Options{Memory: memory, TempDir: t.TempDir()})
		r := rand.New(rand.NewPCG(1, 2))
		var all []string
		for range 6000 {
			key := fmt.Sprint(r.IntN(100000))
			if r.IntN(2) == 0 {
				key = long + key
			}
			all = append(all, key)
			if err := s.Add(0, []byte(key), append([]byte(key), make([]byte, 100)...)); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(all)
		if err := s.Prepare(); err != nil {
			t.Fatal(err)
		}
		if (len(s.runs) > 0) != (memory < 1<<20) {
			t.Fatalf("%d bytes: %d runs", memory, len(s.runs))
		}
		bounds := [][]byte{nil, []byte("0"), []byte("5"), []byte(all[700]), []byte(long), []byte(long + "42"), []byte(all[5000]),
			[]byte("y"), nil}
		var wg sync.WaitGroup
		for i := range len(bounds) - 1 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				lo, hi := bounds[i], bounds[i+1]
				var want []string
				for _, key := range all {
					if key >= string(lo) && (hi == nil || key < string(hi)) {
						want = append(want, key)
					}
				}
				if got := rangeOf(t, s, lo, hi); !slices.Equal(got, want) {
					t.Errorf("from %.20q before %.20q: %d rows, want %d", lo, hi, len(got), len(want))
				}
			}()
		}
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMarks checks that the index of a run stays small, and that a search returns an offset close to the
// key and never beyond it.
func TestMarks(t *testing.T) {
	r := run{step: 1, most: maxMarks}
	for i := range 5000 {
		r.mark(int64(i), fmt.Appendf(nil, "%05d", i))
	}
	if n := len(r.index); n >= maxMarks || n < maxMarks/2 {
		t.Fatalf("%d marks", n)
	}
	for i := range 5000 {
		key := fmt.Appendf(nil, "%05d", i)
		if off := r.before(key); off > int64(i) || i > 0 && off < int64(i)-2*r.step {
			t.Errorf("key %s: offset %d", key, off)
		}
	}
}
