package build_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"kvferry/store"
)

// TestManyOpenTablesAreSmall writes 20 MB into one of several open runs: with few open runs into a single table, with
// more than 32 into tables of 8 MiB. Other shards have no influence.
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

// TestGroupsBeginTables cuts a group into tables where single rows would be.
func TestGroupsBeginTables(t *testing.T) {
	var want, got []store.Table
	for _, grouped := range []bool{false, true} {
		b, _ := newBuilder(t, store.BuildOptions{TableSize: 64 << 10})
		r, err := b.Run("default", 1, 0)
		must(t, err)
		g := store.Group{Prefix: []byte("key:"), Tail: []byte("!"), Suffix: []byte("end")}
		rnd := rand.New(rand.NewSource(1))
		for i := range 2000 {
			value := make([]byte, 300)
			rnd.Read(value)
			g.Rows = append(g.Rows, store.Row{Key: fmt.Appendf(nil, "%06d", i), Value: value})
		}
		if grouped {
			must(t, r.AppendGroup(&g))
		} else {
			must(t, g.Each(r.Append))
		}
		must(t, r.Close())
		want, got = got, tablesOf(t, b, 1)
		b.Abort()
	}
	if len(got) < 8 || !reflect.DeepEqual(got, want) {
		t.Errorf("in groups %d tables: %+v\nrow by row %d: %+v", len(got), got, len(want), want)
	}
	b, _ := newBuilder(t, store.BuildOptions{})
	r, err := b.Run("default", 1, 0)
	must(t, err)
	defer b.Abort()
	g := store.Group{Rows: []store.Row{{Key: []byte("b")}, {Key: []byte("a")}}}
	if err := r.AppendGroup(&g); err == nil || !strings.Contains(err.Error(), `key "a" after "b"`) {
		t.Errorf("a group out of order: %v", err)
	}
}
