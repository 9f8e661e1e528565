package files

import "testing"

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
