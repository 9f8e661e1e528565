package sst_test

import (
	"bytes"
	"math/rand"
	"slices"
	"testing"

	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/sst"
)

// grouped splits rows into groups of random sizes: part of the common key prefix becomes the group's prefix, and common
// ends of keys and values become its suffixes.
func grouped(rnd *rand.Rand, rows []row) (out []store.Group) {
	for len(rows) > 0 {
		part := rows[:min(1+rnd.Intn(40), len(rows))]
		rows = rows[len(part):]
		prefix := base.CommonPrefix(part[0].key, part[len(part)-1].key, 0)
		tail, suffix := len(part[0].key), len(part[0].value)
		for _, r := range part {
			prefix = base.CommonPrefix(part[0].key[:prefix], r.key, 0)
			tail = commonEnd(part[0].key[:tail], r.key)
			suffix = commonEnd(part[0].value[:suffix], r.value)
		}
		prefix = rnd.Intn(prefix + 1)
		for _, r := range part {
			tail = min(tail, len(r.key)-prefix)
		}
		first := part[0]
		g := store.Group{Prefix: first.key[:prefix], Tail: first.key[len(first.key)-tail:],
			Suffix: first.value[len(first.value)-suffix:]}
		shortest := slices.MinFunc(part, func(a, b row) int { return len(a.value) - len(b.value) })
		if rnd.Intn(2) == 0 {
			suffix = rnd.Intn(min(len(shortest.value), 9) + 1)
			g.Suffix, g.EndLen = nil, suffix
			for _, r := range part {
				g.Ends = append(g.Ends, r.value[len(r.value)-suffix:]...)
			}
		}
		for _, r := range part {
			g.Rows = append(g.Rows, store.Row{Key: r.key[prefix : len(r.key)-tail], Value: r.value[:len(r.value)-suffix]})
		}
		out = append(out, g)
	}
	return out
}

func commonEnd(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return min(n, 9)
}

// TestGroups writes the shapes row by row and in groups: the blocks are the same. (The value suffix of a large row is
// compressed separately, so these tables are only read.)
func TestGroups(t *testing.T) {
	for name, rows := range shapes() {
		o := options()
		var out bytes.Buffer
		w := sst.NewWriter(&out, o)
		apart := false
		for _, g := range grouped(rand.New(rand.NewSource(3)), rows) {
			for i := range g.Rows {
				apart = apart || len(g.End(i)) > 0 && len(g.Rows[i].Value) > 900<<10
			}
			for rest := g; len(rest.Rows) > 0; {
				before := w.Blocks()
				n, err := w.AddGroup(&rest)
				if err != nil || n == 0 || n < len(rest.Rows) && w.Blocks() == before {
					t.Fatalf("%s: %d of %d rows added, %v", name, n, len(rest.Rows), err)
				}
				rest.Skip(n)
			}
		}
		written, err := w.Close()
		if err != nil || written.Entries != int64(len(rows)) {
			t.Fatalf("%s: %+v, %v", name, written, err)
		}
		pebbleReads(t, out.Bytes(), o.Comparer, rows)
		if want := write(t, options(), rows); !apart && !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s: %d bytes in groups, %d row by row, or others", name, out.Len(), len(want))
		}
	}
}

// TestGroupOrder has a key out of order in each place of a group, and after one.
func TestGroupOrder(t *testing.T) {
	for _, at := range []int{1, 2, 3} {
		g := store.Group{Prefix: []byte("p"), Tail: []byte("t"),
			Rows: []store.Row{{Key: []byte("a")}, {Key: []byte("b")}, {Key: []byte("c")}}}
		w := sst.NewWriter(new(bytes.Buffer), options())
		n, err := 0, error(nil)
		if at < len(g.Rows) {
			g.Rows[at].Key = []byte("a")
			n, err = w.AddGroup(&g)
		} else if n, err = w.AddGroup(&g); err == nil {
			err = w.Add([]byte("pct"), nil)
		}
		if n != at || err != sst.ErrOrder {
			t.Errorf("row %d: %d rows added, %v", at, n, err)
		}
		if n, err := w.AddGroup(&g); n != 0 || err != sst.ErrOrder {
			t.Errorf("row %d: after it %d rows added, %v", at, n, err)
		}
	}
}
