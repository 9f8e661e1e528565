package files

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
)

// TestLost compares spans with a map of bytes.
func TestLost(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var l lost
		var gone [100]bool
		for range rnd.IntN(12) {
			off, n := rnd.IntN(90), 1+rnd.IntN(10)
			l.add(int64(off), n, syscall.EIO)
			for i := off; i < off+n; i++ {
				gone[i] = true
			}
		}
		for off := range 100 {
			for n := 1; off+n <= 100; n++ {
				want := false
				for i := off; i < off+n; i++ {
					want = want || gone[i]
				}
				if got := l.in(int64(off), n) != nil; got != want {
					t.Fatalf("%d bytes at %d: lost %t, spans %v", n, off, got, l.spans)
				}
			}
		}
	}
}

// TestWindowBesideLost: an unreadable window does not lose the readable bytes around the lost ones.
func TestWindowBesideLost(t *testing.T) {
	f, want := oneFile(t)
	f.lost.add(20_000, 10, syscall.EIO)
	w := Window{All: &Windows{Memory: 1 << 20}}
	w.Open(f)
	defer w.Close()
	for off := int64(0); off < 100_000; off += 1000 {
		b, err := w.Read(off, 1000)
		if off == 20_000 {
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("lost bytes: %v", err)
			}
			continue
		}
		if err != nil || b[0] != want[off] || b[999] != want[off+999] {
			t.Fatalf("at %d: %v", off, err)
		}
	}
}

// TestPoolWithoutHandles: if the process is out of descriptors, idle files are closed.
func TestPoolWithoutHandles(t *testing.T) {
	dir, _ := someFiles(t, 10)
	s := &Set{Pool: NewPool(100)}
	defer s.Close()
	var all []*File
	for i := range 10 {
		f, err := s.Open(dir, string(rune('0'+i)), i < 8)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	held, err := all[0].Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Inject(func(op, _ string) error {
		if op == "open" && s.Pool.open > 3 { // only this test opens files; the mutex is held
			return syscall.EMFILE
		}
		return nil
	})()
	if err := all[9].ReadFull(make([]byte, 1), 0); err != nil {
		t.Fatal(err)
	}
	if n := s.NumOpen(); n > 4 {
		t.Errorf("%d files are open", n)
	}
	if _, err := held.ReadAt(make([]byte, 1), 0); err != nil {
		t.Errorf("one that is read was closed: %v", err)
	}
	all[0].Release()
	for limit, want := range map[int]int{4: 8, 256: 128, 20_000: 4096, 1 << 30: 4096} {
		if got := share(limit); got != want {
			t.Errorf("of %d files %d are for reading, want %d", limit, got, want)
		}
	}
}

// TestLostErrors: each of two places beside each other keeps its own error.
func TestLostErrors(t *testing.T) {
	var l lost
	first, second := errors.New("first"), errors.New("second")
	l.add(10, 10, first)
	l.add(20, 10, second)
	l.add(0, 10, second)
	for off, want := range map[int64]error{9: second, 10: first, 19: first, 20: second, 30: nil} {
		if err := l.in(off, 1); err != want {
			t.Errorf("at %d: %v, want %v", off, err, want)
		}
	}
}

// TestLostIsNotAskedForAgain: bytes that failed once are lost for all readers; bytes read before stay readable.
func TestLostIsNotAskedForAgain(t *testing.T) {
	f, want := oneFile(t)
	b := make([]byte, 10)
	if err := f.ReadFull(b, 500); err != nil || b[0] != want[500] {
		t.Fatal(err)
	}
	broken := disk.Inject(func(op, _ string) error {
		if op == "read" {
			return syscall.EIO
		}
		return nil
	})
	err := f.ReadFull(b, 1000)
	broken()
	if !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	for off, lost := range map[int64]bool{500: false, 990: false, 991: true, 1000: true, 1009: true, 1010: false} {
		if err := f.ReadFull(b, off); errors.Is(err, syscall.EIO) != lost || (err != nil) != lost {
			t.Errorf("at %d: %v", off, err)
		}
	}
}
