package transfer

import (
	"testing"

	"kvferry/record"
)

// TestTakeNames checks that a string does not take a name that is taken, even by a string of the same batch.
func TestTakeNames(t *testing.T) {
	for _, c := range []struct {
		last string
		keys string
		took int
		left string
	}{
		{"", "abc", 3, "c"}, {"", "a", 1, "a"}, {"a", "abc", 0, "a"}, {"z", "abbc", 2, "b"}, {"z", "aab", 1, "a"}, {"z", "", 0, "z"},
	} {
		x := &task{Rules: &Rules{}, lastKey: []byte(c.last), hasLast: c.last != ""}
		var batch []record.Record
		for i := range c.keys {
			batch = append(batch, record.Record{Header: record.Header{Key: []byte(c.keys[i : i+1])}})
		}
		if n := x.takeNames(batch); n != c.took || string(x.lastKey) != c.left || !x.hasLast {
			t.Errorf("after %q, of %q: %d names, the last %q", c.last, c.keys, n, x.lastKey)
		}
	}
}
