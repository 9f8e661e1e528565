package transfer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
)

// TestNamesakes compares new names with the names found by looking up each candidate.
func TestNamesakes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	types := []record.Type{record.Hash, record.Set}
	for range 300 {
		taken := map[string]bool{}
		names := NewNames(1<<17, t.TempDir()) // sorts on disk
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
		want := map[string]string{}
		for i := range 16 {
			db, key, typ := fmt.Sprint(i%2), fmt.Sprintf("k%d", i/2%4), types[i/8]
			if err := names.lose(&Rename{db: db, typ: typ, key: []byte(key)}); err != nil {
				t.Fatal(err)
			}
			to := fmt.Sprintf("%s:%s", key, typ)
			for taken[db+to] {
				to += "_"
			}
			want[fmt.Sprint(db, key, typ)] = to
		}
		all, err := names.Renames()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 16 || !slices.IsSortedFunc(all, byName) {
			t.Error("not in order")
		}
		for _, n := range all {
			id := fmt.Sprint(n.db, string(n.key), n.typ)
			if string(n.to) != want[id] || !bytes.Equal(newName(all, Rename{db: n.db, typ: n.typ, key: n.key}), n.to) {
				t.Fatalf("%s: new name %s, want %s", id, n.to, want[id])
			}
		}
		none := Rename{db: "0", typ: record.List, key: []byte("k1")}
		if got := newName(all, none); !bytes.Equal(got, none.plain()) {
			t.Errorf("a name that nobody has is %q", got)
		}
		names.Close()
	}
}
