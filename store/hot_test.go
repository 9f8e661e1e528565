package store

import "testing"

// TestHot: blocks stay up to the limit, those used last; a block that is kept is not replaced.
func TestHot(t *testing.T) {
	var none *Hot
	if none.Get("t", 1) != nil || none.Wants(0) {
		t.Error("nothing keeps a block")
	}
	h := &Hot{Max: 320}
	if !h.Wants(20) || h.Wants(21) {
		t.Error("blocks of up to a sixteenth are wanted")
	}
	for i := range uint64(4) {
		h.Put("t", i, int(i), 100)
		h.Get("t", 0) // stays in use
	}
	h.Put("t", 0, -1, 100)
	for off, want := range map[uint64]any{0: 0, 1: nil, 2: 2, 3: 3, 4: nil} {
		if got := h.Get("t", off); got != want {
			t.Errorf("block %d: %v, want %v", off, got, want)
		}
	}
	if h.Get("u", 2) != nil || h.size != 300 {
		t.Errorf("another table, or %d bytes", h.size)
	}
}
