package lsm

import (
	"bytes"
	"testing"
)

// TestCoverageBefore: before the first tombstone nothing is deleted, not even what has the sequence number 0.
func TestCoverageBefore(t *testing.T) {
	at := func(key string) bound { return bound{key: []byte(key)} }
	c := &coverage{compare: bytes.Compare, frags: []fragment{{at("c"), 7}, {at("e"), 0}}}
	for _, w := range []struct {
		key string
		seq uint64
	}{{"a", 0}, {"b", 0}, {"c", 7}, {"d", 7}, {"e", 0}, {"f", 0}} {
		if got := c.seq([]byte(w.key)); got != w.seq {
			t.Errorf("%s is deleted below %d, want %d", w.key, got, w.seq)
		}
	}
}
