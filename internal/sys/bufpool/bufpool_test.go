package bufpool

import "testing"

func TestReset(t *testing.T) {
	for _, size := range []int{0, 1, Large, Large + 1} {
		b := Reset(make([]byte, size))
		if len(b) != 0 || (cap(b) > 0) != (size > 0 && size <= Large) {
			t.Errorf("of %d bytes: %d with room for %d", size, len(b), cap(b))
		}
	}
}

func TestRoom(t *testing.T) {
	small := make([]byte, 10)
	for _, n := range []int{0, 10, Large} {
		if b := Room(small, n); len(b) != 0 || cap(b) != 10 { // append grows small buffers
			t.Errorf("%d bytes: %d with room for %d", n, len(b), cap(b))
		}
	}
	large := Room(small, Large+5)
	if len(large) != 0 || cap(large) != Large+5 {
		t.Errorf("%d with room for %d", len(large), cap(large))
	}
	if b := Room(large[:3], Large); len(b) != 0 || cap(b) != Large+5 {
		t.Errorf("%d with room for %d, which is there", len(b), cap(b))
	}
}

func TestGrow(t *testing.T) {
	small := append(make([]byte, 0, 10), "small"...)
	if b := Grow(small, 5); string(b) != "small" || cap(b) != 10 {
		t.Errorf("%q with room for %d, which is there", b, cap(b))
	}
	if b := Grow(small, Large); string(b) != "small" || cap(b) < Large+5 {
		t.Errorf("%q with room for %d", b, cap(b))
	}
	if b := Grow(small, Large+1); string(b) != "small" || cap(b) != Large+6 {
		t.Errorf("%q with room for %d", b, cap(b))
	}
}

func TestResetAll(t *testing.T) {
	a, b := []byte("small"), make([]byte, Large+1)
	ResetAll(&a, &b)
	if len(a) != 0 || cap(a) == 0 || b != nil {
		t.Errorf("%d with room for %d, %d", len(a), cap(a), cap(b))
	}
}
