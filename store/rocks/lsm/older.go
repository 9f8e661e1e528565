package lsm

import (
	"cmp"
	"slices"
	"sort"
)

// ages counts the tables that may hold older rows of a key range. It is asked once per unreadable table or block. There
// may be as many of these as tables, so a query must not visit every table.
//
// Readable tables are sorted by age: the deepest level first, level 0 last and by number. The older tables that overlap
// a range are all older ones except those that end before it or begin behind it. A Fenwick tree over that order yields
// both numbers. Its nodes hold the ranks of bounds instead of keys.
type ages struct {
	compare func(a, b []byte) int
	tables  []*Table // oldest first
	firsts  [][]byte // of tables, sorted
	lasts   [][]byte
	nodes   []ageNode // node i covers tables i-(i&-i) to i-1
}

// ageNode holds the ranks of its tables' bounds, sorted.
type ageNode struct{ firsts, lasts []int32 }

// byAge orders tables, the oldest first.
func byAge(t, u *Table) int {
	if t.Level != u.Level || t.Level > 0 {
		return cmp.Compare(u.Level, t.Level)
	}
	return cmp.Compare(t.Number, u.Number)
}

// newAges indexes all readable tables of a keyspace.
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

// rank sorts one bound of all tables and adds the ranks to the nodes.
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

// older counts the tables older than t whose bounds overlap a gap.
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
	return max(n, 0) // bounds may be out of order
}
