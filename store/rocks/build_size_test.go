package rocks_test

import (
	"fmt"
	"math/rand"
	"testing"

	"kvferry/store"
)

// TestManyOpenTablesAreSmall writes 20 MB into one of several open runs: with few of them into a
// single table, with more than 32 into tables of 8 MiB, whatever other shards do.
func TestManyOpenTablesAreSmall(t *testing.T) {
	for _, c := range []struct{ runs, tables int }{{32, 1}, {33, 3}} {
		b, _ := newBuilder(t, store.BuildOptions{})
		open := func(shard, lane int) store.Run {
			r, err := b.Run("default", shard, uint64(lane))
			must(t, err)
			must(t, r.Append([]byte{byte(shard), byte(lane)}, nil))
			return r
		}
		var runs []store.Run
		for lane := range c.runs {
			runs = append(runs, open(1, lane), open(2, lane))
		}
		last := runs[len(runs)-2] // of shard 1
		value := make([]byte, 1<<20)
		rnd := rand.New(rand.NewSource(1))
		for i := range 20 {
			rnd.Read(value)
			must(t, last.Append(fmt.Appendf([]byte{1, byte(c.runs - 1)}, "%02d", i), value))
		}
		must(t, last.Close())
		if got := len(tablesOf(t, b, 1)); got != c.tables {
			t.Errorf("%d runs open: %d tables, want %d", c.runs, got, c.tables)
		}
		b.Abort()
	}
}
