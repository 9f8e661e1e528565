package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
)

// TestWindowSteps: a window doubles during sequential reading, holds only the requested bytes after a jump, and is
// minimal without memory. A reopened window counts once.
func TestWindowSteps(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "0"), make([]byte, 4<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Set{}
	defer s.Close()
	f, err := s.Open(dir, "0", true)
	if err != nil {
		t.Fatal(err)
	}
	for memory, want := range map[int64]string{
		32 << 20: "32 64 128 256 256 jump 0 32 back 0 32 ",
		64 << 10: "32 64 64 64 64 jump 0 32 back 0 32 ",
		8 << 10:  "8 8 8 8 8 jump 0 8 back 0 8 ",
	} {
		w := Window{All: &Windows{Memory: memory}}
		for range 2 {
			w.Open(f)
			if _, users := w.All.InUse(); users != 1 {
				t.Errorf("memory %d: %d windows", memory, users)
			}
			got, at := "", int64(0)
			read := func(times int) {
				for range times {
					if _, err := w.Read(at, 1000); err != nil {
						t.Fatal(err)
					}
					got += fmt.Sprint(w.n>>10, " ")
					at = w.off + int64(w.n)
				}
			}
			read(5)
			got, at = got+"jump ", 2<<20
			read(2)
			got, at = got+"back ", 1<<20
			read(2)
			if got != want {
				t.Errorf("memory %d: windows of %sKiB, want %s", memory, got, want)
			}
			w.Close()
		}
	}
}

// TestWindowsShareMemory: the more cursors read, the smaller their windows.
func TestWindowsShareMemory(t *testing.T) {
	w := Windows{Memory: 4 << 20}
	if n := w.limit(); n != maxWindow {
		t.Errorf("limit %d alone", n)
	}
	w.Users.Store(64)
	if n := w.limit(); n != 64<<10 {
		t.Errorf("limit %d of 64", n)
	}
	w.Users.Store(1 << 20)
	if n := w.limit(); n != minWindow {
		t.Errorf("limit %d of a million", n)
	}
	for _, n := range []int{1, minWindow, minWindow + 1, 1 << 20, 1<<20 + 1, 40 << 20} {
		b := w.get(n)
		if len(b) < n {
			t.Errorf("get(%d) has %d", n, len(b))
		}
		w.put(b)
	}
	if n := w.lent.Load(); n != 0 {
		t.Errorf("%d bytes lent after all came back", n)
	}
}

// TestClasses: buffer sizes double from the smallest window to the largest, so that returned buffers can be reused.
func TestClasses(t *testing.T) {
	for n, want := range map[int][2]int{1: {0, minWindow}, minWindow: {0, minWindow}, minWindow + 1: {1, 2 * minWindow},
		2 * minWindow: {1, 2 * minWindow}, 2*minWindow + 1: {2, 4 * minWindow}, maxWindow: {5, maxWindow}} {
		if pool, size := class(n); pool != want[0] || size != want[1] {
			t.Errorf("%d bytes: pool %d of %d, want %d", n, pool, size, want)
		}
	}
}

// TestWindowReads counts reads of the file: a window is read once and used to its last byte, and no requested byte is
// read twice.
func TestWindowReads(t *testing.T) {
	f, want := oneFile(t)
	reads := 0
	defer disk.Inject(func(op, _ string) error {
		if op == "read" {
			reads++
		}
		return nil
	})()
	w := Window{All: &Windows{Memory: 1 << 20}}
	w.Open(f)
	for _, c := range []struct{ off, need, reads, window int }{
		{90, 10, 1, 10}, {95, 5, 0, 10}, // only the requested bytes, after a jump
		{100, 1, 1, firstWindow}, {100, 1, 0, firstWindow}, {101, 0, 0, firstWindow}, // the same bytes again
		{100, firstWindow, 0, firstWindow}, {99 + firstWindow, 1, 0, firstWindow}, // to the last byte
		{100, firstWindow + 1, 1, 2 * firstWindow}, {100, 90_000, 1, 99_900}, // more of the same place
		{0, 1, 1, 1}, {1, 1, 1, firstWindow}, {1 + firstWindow, 1, 1, 2 * firstWindow}, // one after another
		{99_000, 1000, 1, 1000}, // to the end of the file
	} {
		reads = 0
		b, err := w.Read(int64(c.off), c.need)
		if err != nil || !bytes.Equal(b, want[c.off:c.off+c.need]) || reads != c.reads || w.n != c.window {
			t.Errorf("%d bytes at %d: %d reads, a window of %d, want %d and %d; %v", c.need, c.off, reads, w.n, c.reads, c.window,
				err)
		}
	}
}

// TestWindowJumps: a read that starts up to a window's length behind the last window is sequential; one further on is a
// jump and resets the window size.
func TestWindowJumps(t *testing.T) {
	f := Temporary(zeros{}, "zeros", 0)
	f.Size = 1 << 30
	for off, want := range map[int64]int{1000: 64, 999: 16, 1000 + 64<<10: 64, 1001 + 64<<10: 16} {
		w := Window{All: &Windows{Memory: 1 << 20}}
		w.Open(f)
		w.Read(999, 1)
		w.Read(1000, 1)
		w.Read(off, 33<<10)
		if w.step>>10 != 2*want {
			t.Errorf("at %d: the next window has %d KiB, want %d", off, w.step>>10, 2*want)
		}
		w.Close()
	}
}

// zeros is a file of zeros.
type zeros struct{}

func (zeros) ReadAt(b []byte, _ int64) (int, error) {
	clear(b)
	return len(b), nil
}

// TestWindowLends: a buffer of more than twice the next read is given back, one of exactly twice is kept.
func TestWindowLends(t *testing.T) {
	f := Temporary(zeros{}, "zeros", 0)
	f.Size = 1 << 30
	for _, c := range []struct {
		memory      int64
		first, room int
	}{
		{32 << 10, 40 << 10, 64 << 10}, {25 << 10, 40 << 10, 8 << 10}, {32 << 10, 70 << 10, 8 << 10}, {2 << 10, 16 << 10, 16 << 10}, {2 << 10, 17 << 10, 8 << 10},
	} {
		w := Window{All: &Windows{Memory: c.memory}}
		w.Open(f)
		w.Read(0, c.first)
		w.All.lent.Store(0) // others gave back: it is not crowded
		w.Read(1<<20, 1)
		if n := cap(w.buf); n != c.room {
			t.Errorf("memory %d: after %d bytes there is room for %d, want %d", c.memory, c.first, n, c.room)
		}
		w.Close()
		w.Close()
		if _, users := w.All.InUse(); users != 0 {
			t.Errorf("%d windows after Close", users)
		}
	}
	all := Windows{}
	for _, n := range []int{10_000, minWindow << len(all.pools)} { // of no pool
		all.put(make([]byte, n))
	}
}

// TestWindowForgets: bytes of another file, or of a failed read, are never returned later.
func TestWindowForgets(t *testing.T) {
	f, want := oneFile(t)
	w := Window{All: &Windows{Memory: 1 << 20}}
	one := func(f *File, off int64, want byte) {
		t.Helper()
		if b, err := w.Read(off, 1); err != nil || b[0] != want {
			t.Errorf("%v, %v, want %d", b, err, want)
		}
	}
	w.Open(f)
	one(f, 0, want[0])
	w.GiveBack()
	one(f, 0, want[0])
	other := Temporary(zeros{}, "zeros", 0)
	other.Size = 100_000
	w.Open(f)
	one(f, 1, want[1])
	w.Open(other)
	one(other, 1, 0)
	w.Open(f)
	f.lost.add(5000, 1, syscall.EIO)
	for range 2 {
		if _, err := w.Read(5000, 1); !errors.Is(err, syscall.EIO) {
			t.Errorf("lost byte: %v", err)
		}
	}
}
