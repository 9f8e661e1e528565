package convert

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kvferry/record"
)

// TestNamesakes compares new names with those that looking up each candidate gives.
func TestNamesakes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	types := []record.Type{record.Hash, record.Set}
	for range 300 {
		taken := map[string]bool{}
		names := newNamesakes(1, t.TempDir()) // sorts on disk
		for range rnd.IntN(40) {
			db := fmt.Sprint(rnd.IntN(2))
			name := fmt.Sprintf("k%d:%s%s", rnd.IntN(4), types[rnd.IntN(2)], strings.Repeat("_", rnd.IntN(4)))
			if rnd.IntN(5) == 0 {
				name += ":set" // a new name of a new name
			}
			taken[db+name] = true
			if err := names.note(db, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		var all []rename
		want := map[string]string{}
		for i := range 16 {
			db, key, typ := fmt.Sprint(i%2), fmt.Sprintf("k%d", i/2%4), types[i/8]
			all = append(all, rename{db: db, typ: typ, key: []byte(key)})
			to := fmt.Sprintf("%s:%s", key, typ)
			for taken[db+to] {
				to += "_"
			}
			want[fmt.Sprint(db, key, typ)] = to
		}
		if err := names.give(all); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(all, byName) {
			t.Error("not in order")
		}
		for _, n := range all {
			id := fmt.Sprint(n.db, string(n.key), n.typ)
			if string(n.to) != want[id] || !bytes.Equal(newName(all, rename{db: n.db, typ: n.typ, key: n.key}), n.to) {
				t.Fatalf("%s: new name %s, want %s", id, n.to, want[id])
			}
		}
		none := rename{db: "0", typ: record.List, key: []byte("k1")}
		if got := newName(all, none); !bytes.Equal(got, none.plain()) {
			t.Errorf("a name that nobody has is %q", got)
		}
		names.sorter.Close()
	}
}

// TestRenameGrowth: readers are not opened for each name, neither to give it nor to read its record.
func TestRenameGrowth(t *testing.T) {
	value := []record.Element{{Value: []byte("v")}}
	field := []record.Element{{Name: []byte("f"), Value: []byte("v")}}
	var opened [2]int64
	for i, n := range []int{200, 1600} {
		var records []fakeRecord
		var want []string
		for j := range n {
			key := fmt.Sprintf("k%06d", j)
			records = append(records, fakeRecord{DB: "0", Type: record.String, Key: []byte(key), Elems: value},
				fakeRecord{DB: "0", Type: record.Hash, Key: []byte(key), Elems: field})
			to := key + ":hash"
			if j%10 == 0 { // which some record has already
				records = append(records, fakeRecord{DB: "0", Type: record.String, Key: []byte(to), Elems: value})
				want = append(want, fmt.Sprintf("0 %s string 0 1", to))
				to += "_"
			}
			want = append(want, fmt.Sprintf("0 %s string 0 1", key), fmt.Sprintf("0 %s hash 0 1", to))
		}
		b := newBench(t, records)
		b.to.limits.SameName = false
		b.to.groups = []record.TypeSet{record.AllTypes}
		b.o.Prefer, b.o.Rename, b.o.AllowLoss, b.o.Workers = []record.Type{record.String}, true, []string{"same-name"}, 1
		var opens atomic.Int64
		b.from.wrap = func(s *fakeSource) { s.onOpen = func() { opens.Add(1) } }
		b.run()
		got := b.names("dst")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%d names, want %d", len(got), len(want))
		}
		opened[i] = opens.Load()
	}
	if opened[1] > opened[0]+20 {
		t.Errorf("%d readers for 200 names, %d for 1,600", opened[0], opened[1])
	}
}
