package lsm

import (
	"cmp"
	"slices"
	"sort"
)

// ages tells in how many tables older rows of a range of keys may be. It is asked once for each table or block that cannot
// be read, of which there may be as many as tables, so that no answer may take a look at all of them.
//
// Tables that can be read stand in the order of their age: those of the deepest level first, those of level 0 last and by
// their numbers. A range reaches into all that are older than a table, but those that end before it and those that begin
// behind it: two numbers, which a Fenwick tree over that order has. Its nodes hold the ranks of bounds instead of keys.
type ages struct {
	compare func(a, b []byte) int
	tables  []*Table // oldest first
	firsts  [][]byte // of tables, sorted
	lasts   [][]byte
	nodes   []ageNode // node i is of tables i-(i&-i) to i-1
}

// ageNode has the ranks of its tables' bounds, sorted.
type ageNode struct{ firsts, lasts []int32 }

// byAge orders tables, the oldest first.
func byAge(t, u *Table) int {
	if t.Level != u.Level || t.Level > 0 {
		return cmp.Compare(u.Level, t.Level)
	}
	return cmp.Compare(t.Number, u.Number)
}

// newAges looks at all tables of a keyspace.
func newAges(ks *Keyspace) *ages {
	a := &ages{compare: ks.cmp.Compare}
	for _, t := range ks.Tables {
		if _, err := t.Load(); err == nil {
			a.tables = append(a.tables, t)
		}
	}
	slices.SortStableFunc(a.tables, byAge)
	a.nodes = make([]ageNode, len(a.tables)+1)
	a.firsts = a.rank(func(t *Table) []byte { return t.First }, func(n *ageNode) *[]int32 { return &n.firsts })
	a.lasts = a.rank(func(t *Table) []byte { return t.Last }, func(n *ageNode) *[]int32 { return &n.lasts })
	return a
}

// rank sorts a bound of all tables, and puts their ranks into the nodes.
func (a *ages) rank(bound func(*Table) []byte, ranks func(*ageNode) *[]int32) [][]byte {
	at := make([]int, len(a.tables))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(i, j int) int { return a.compare(bound(a.tables[i]), bound(a.tables[j])) })
	keys := make([][]byte, len(at))
	for r, i := range at {
		keys[r] = bound(a.tables[i])
		for n := i + 1; n < len(a.nodes); n += n & -n {
			list := ranks(&a.nodes[n])
			*list = append(*list, int32(r))
		}
	}
	return keys
}

// older counts the tables older than t whose bounds reach into a gap.
func (a *ages) older(t *Table, g *gap) (n int) {
	before := sort.Search(len(a.lasts), func(i int) bool {
		if g.low == nil {
			return true
		}
		c := a.compare(a.lasts[i], g.low)
		return c > 0 || c == 0 && !g.after
	})
	behind := sort.Search(len(a.firsts), func(i int) bool { return a.compare(a.firsts[i], g.high) > 0 })
	older, _ := slices.BinarySearchFunc(a.tables, t, byAge)
	for i := older; i > 0; i -= i & -i {
		node := &a.nodes[i]
		ends, _ := slices.BinarySearch(node.lasts, int32(before))
		begins, _ := slices.BinarySearch(node.firsts, int32(behind))
		n += begins - ends
	}
	return max(n, 0) // bounds may be in no order
}
