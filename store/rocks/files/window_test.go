package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestWindowSteps: a window doubles while reading goes on, starts small again after a jump, and is as small as can be where
// there is no memory. A window that is used again counts once.
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
		32 << 20: "32 64 128 256 256 jump 32 64 back 32 64 ",
		64 << 10: "32 64 64 64 64 jump 32 64 back 32 64 ",
		8 << 10:  "8 8 8 8 8 jump 8 8 back 8 8 ",
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

// TestClasses: buffers double from the smallest window to the largest, so that one that came back fits the next.
func TestClasses(t *testing.T) {
	for n, want := range map[int][2]int{1: {0, minWindow}, minWindow: {0, minWindow}, minWindow + 1: {1, 2 * minWindow}, 2 * minWindow: {1, 2 * minWindow},
		2*minWindow + 1: {2, 4 * minWindow}, maxWindow: {5, maxWindow}} {
		if pool, size := class(n); pool != want[0] || size != want[1] {
			t.Errorf("%d bytes: pool %d of %d, want %d", n, pool, size, want)
		}
	}
}
