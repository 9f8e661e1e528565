package command

import (
	"strconv"
	"testing"
)

// TestForgottenCursors: the latest maxCursors places are known, each once, and older ones are forgotten.
func TestForgottenCursors(t *testing.T) {
	const more = 3
	var c cursors
	var ids []uint64
	at := func(i int) place { return place{db: i % 2, key: strconv.Itoa(i / 2)} }
	for i := range maxCursors + more {
		ids = append(ids, c.put(at(i)))
	}
	if again := c.put(at(maxCursors)); again != ids[maxCursors] { // takes no place of another one
		t.Errorf("a place has cursors %d and %d", ids[maxCursors], again)
	}
	for i, id := range ids {
		if p, ok := c.places.get(id); ok != (i >= more) || ok && p != at(i) {
			t.Fatalf("cursor %d of %d: %+v, known: %t", i, len(ids), p, ok)
		}
	}
	if n := len(c.places.of); n != maxCursors {
		t.Errorf("%d places are kept", n)
	}
}
