package lsm

import (
	"strings"
	"testing"

	"kvferry/store"
)

// TestMayWait: a block of up to a sixteenth of the memory waits, one below 1 MiB always; values of up to 4 KiB are kept beside
// a block that does not.
func TestMayWait(t *testing.T) {
	for memory, want := range map[int64]int{0: 1 << 20, 16 << 20: 1 << 20, 16<<20 + 16: 1<<20 + 1, 160 << 20: 10 << 20} {
		env := &Env{}
		env.Windows.Memory = memory
		if n := env.mayWait(); n != want {
			t.Errorf("memory %d: blocks of %d bytes wait, want %d", memory, n, want)
		}
		for n, waits := range map[int]bool{1<<20 - 1: true, want - 1: true, want: false} {
			c := &Cursor{ks: &Keyspace{Env: env}, data: make([]byte, n)}
			if c.large() != (n >= 1<<20) {
				t.Errorf("a block of %d bytes is large: %t", n, c.large())
			}
			if !waits {
				c.suffix = 1 // of an entry that came by way of a spool: it waits
			}
			if c.release() {
				t.Errorf("memory %d: a block of %d bytes is given back", memory, n)
			}
		}
	}
	rows := []store.Row{{Value: []byte("small")}, {Value: []byte(strings.Repeat("k", 4<<10))},
		{Value: []byte(strings.Repeat("g", 4<<10+1))}, {Value: []byte{}}, {Value: []byte(strings.Repeat("g", 1<<20))}}
	if first := new(rowBatch).keep(rows); first != 2 || string(rows[0].Value) != "small" || len(rows[1].Value) != 4<<10 ||
		rows[1].Value[0] != 'k' ||
		rows[2].Value != nil || rows[3].Value == nil || rows[4].Value != nil {
		t.Errorf("the first value that is gone is %d", first)
	}
	if first := new(rowBatch).keep(rows[:2]); first != 2 {
		t.Errorf("of two small ones the first that is gone is %d", first)
	}
}
