package extsort

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
)

// TestEach checks that duplicates are reported in order with their counts, with any memory limit, for evenly
// distributed hashes and for hashes that differ only in their lowest bits.
func TestEach(t *testing.T) {
	t.Run("64", func(t *testing.T) { testEach(t, func(hi, lo uint64) [1]uint64 { return [1]uint64{hi ^ lo} }) })
	t.Run("128", func(t *testing.T) { testEach(t, func(hi, lo uint64) [2]uint64 { return [2]uint64{hi, lo} }) })
}

func testEach[H Hash](t *testing.T, of func(hi, lo uint64) H) {
	r := rand.New(rand.NewPCG(1, 2))
	hashes := map[string]func() H{
		"spread": func() H { return of(r.Uint64(), r.Uint64()) },
		"close":  func() H { return of(5, r.Uint64N(1<<40)) },
		"ends":   func() H { return of(r.Uint64N(2)*(1<<64-1), r.Uint64N(1<<40)) },
	}
	for name, hash := range hashes {
		for _, n := range []int{0, 1, 2, 1000, 1024, 1025, 9000} {
			for _, memory := range []int64{0, 1, 80 << 10} {
				f, dir := NewDuplicates[H](memory, t.TempDir()), t.TempDir()
				f.tempDir = dir
				var all []H
				want := map[H]int64{}
				for range n {
					h := hash()
					if len(all) > 0 && r.IntN(10) == 0 {
						h = all[r.IntN(len(all))]
						want[h]++
					}
					all = append(all, h)
					if err := f.Add(h); err != nil {
						t.Fatal(err)
					}
				}
				var last H
				err := f.Each(func(h H, more int64) error {
					if want[h] != more || compareHashes(last, h) > 0 {
						t.Errorf("%s, %d in %d bytes: %x %d times more, want %d; before it %x", name, n, memory, h, more, want[h],
							last)
					}
					delete(want, h)
					last = h
					return nil
				})
				if left, e := os.ReadDir(dir); err != nil || len(want) > 0 || e != nil || len(left) > 0 {
					t.Errorf("%s, %d in %d bytes: %d were not found, %d files are left, %v", name, n, memory, len(want),
						len(left), err)
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	stop := errors.New("stop")
	for _, n := range []int{2, 5000} {
		f := NewDuplicates[[2]uint64](1, t.TempDir())
		for range n {
			if err := f.Add([2]uint64{1, 2}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Each(func([2]uint64, int64) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%d: %v", n, err)
		}
	}
	f := NewDuplicates[[2]uint64](1, "/nowhere")
	var err error
	for i := 0; err == nil && i < 5000; i++ {
		err = f.Add([2]uint64{})
	}
	if err == nil || f.Close() != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
	f = NewDuplicates[[2]uint64](1, t.TempDir())
	for range 5000 {
		if err := f.Add([2]uint64{}); err != nil {
			t.Fatal(err)
		}
	}
	f.file.Close()
	if err := f.Each(func([2]uint64, int64) error { return nil }); err == nil {
		t.Error("the file is closed")
	}
}
