package stats

import (
	"bytes"
	"cmp"
	"container/heap"
	"math/bits"
	"slices"

	"kvferry/record"
)

// Prefix sums up the keys with a common prefix: those of its children, listed or not, and the keys that equal it.
type Prefix struct {
	DB string // of all keys; "" if the dataset has several
	// Pattern has the names of the parts up to this one: text, # for a number, * for a part with too many names. Parts
	// that all keys share come first, with their numbers.
	Pattern []byte
	Folded  bool  // Pattern has * for names from First to Last
	Rank    int   // by bytes, from 0, among all prefixes
	Disk    int64 // bytes of the files, shared out by logical bytes; 0 if not all records were read
	Count
	Children []*Prefix // largest first
	Unlisted int       // number of children that are not listed
}

// Buckets returns the expiry histogram.
func (c *Count) Buckets() []ExpiryBucket {
	out := append([]ExpiryBucket{{Name: "expired"}}, expiryBuckets[:]...)
	for i := range out {
		out[i].Sum = c.Expiry[i]
	}
	out[0].Records += c.Skipped
	return append(out, ExpiryBucket{Name: "never", Sum: c.Never()})
}

// sum returns the sums of all keys.
func (t *tree) sum() *Count {
	all := new(Count)
	for _, n := range t.roots {
		n.addTo(all)
	}
	return all
}

// addTo adds the keys of a node and all below it to a sum.
func (n *node) addTo(sum *Count) {
	n.each(func(n *node) {
		if n.own != nil {
			sum.add(n.own)
		}
	})
}

// each calls do for a node and all below it, children in order and before their parent.
func (n *node) each(do func(*node)) {
	for _, p := range n.parts() {
		n.at(p).each(do)
	}
	do(n)
}

func (n *node) at(part KeyPath) *node { return n.kinds[part.Kind()].by[string(part)] }

// parts returns the parts of a node's children in order.
func (n *node) parts() (out []KeyPath) {
	for kind := range n.kinds {
		for part := range n.kinds[kind].by {
			out = append(out, KeyPath(part))
		}
	}
	slices.SortFunc(out, func(a, b KeyPath) int { return cmp.Or(bytes.Compare(a.Text(), b.Text()), bytes.Compare(a, b)) })
	return out
}

// weigh sets the logical bytes of a node and all below it, and their bytes of the groups of files of its database.
func (n *node) weigh(groups []Group) {
	var all Count
	n.addTo(&all)
	seen := make([]int64, len(groups))
	n.each(func(n *node) {
		n.bytes, n.disk = 0, 0
		for _, p := range n.parts() {
			n.bytes, n.disk = n.bytes+n.at(p).bytes, n.disk+n.at(p).disk
		}
		if n.own == nil {
			return
		}
		n.bytes += n.own.Sum().Bytes
		for i, g := range groups {
			whole, before := all.bytes(g.Types), seen[i]
			seen[i] += n.own.bytes(g.Types)
			n.disk += share(g.Bytes, seen[i], whole) - share(g.Bytes, before, whole) // the shares add up to the size
		}
	})
}

// bytes returns the logical bytes of some types.
func (c *Count) bytes(types record.TypeSet) (n int64) {
	for t := range c.Types {
		if types.Has(record.Type(t)) {
			n += c.Types[t].Bytes
		}
	}
	return n
}

// share returns size times part divided by whole.
func share(size, part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(size), uint64(part))
	if hi >= uint64(whole) {
		return 0 // no sums of records
	}
	n, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(n)
}

// maxListed is the number of prefixes in a result for each key in a list.
const maxListed = 16

// prefixes lists the largest prefixes below the root: always parents before their children. A prefix with no keys of its
// own and a single child is not listed, but the child is.
func (t *tree) prefixes(a *About) *Prefix {
	root := &Prefix{}
	list := &candidates{}
	for i := range a.Facts.Databases {
		d := &a.Facts.Databases[i]
		db, groups := string(d.Name), d.Groups
		n := t.roots[db]
		if n == nil {
			continue
		}
		if !a.Everything {
			groups = nil
		}
		n.weigh(groups)
		n.addTo(&root.Count)
		root.Disk += n.disk
		if len(a.Facts.Databases) > 1 {
			heap.Push(list, candidate{node: n, parent: root, db: db})
		} else {
			root.DB = db
			list.below(n, &candidate{db: db}, root)
		}
	}
	for rank := 1; list.Len() > 0; rank++ {
		c := heap.Pop(list).(candidate)
		if rank > maxListed*a.Top {
			c.parent.Unlisted++
			continue
		}
		p := &Prefix{DB: c.db, Rank: rank, Disk: c.node.disk}
		c.node.addTo(&p.Count)
		p.Pattern, p.Folded = a.pattern(c.parts, &p.Count)
		c.parent.Children = append(c.parent.Children, p)
		list.below(c.node, &c, p)
	}
	return root
}

// candidate is a node that may be listed.
type candidate struct {
	node   *node
	parent *Prefix
	db     string
	parts  []KeyPath
}

// pattern returns the names of parts, but those of the keys as long as all keys have the same, and whether one is * for
// many.
func (a *About) pattern(parts []KeyPath, keys *Count) (out []byte, folded bool) {
	s, same := KeyShaper{Delimiter: string(a.Delimiter)}, keys.same()
	mask := s.Mask(keys.First)
	for _, part := range parts {
		name, delimiter := s.Cut(same[len(out):], mask)
		if delimiter == 0 && !(part.Tail() && len(same) == len(keys.Last) && len(same) < longestKey) {
			same = nil // not a whole part
			break
		}
		out = append(out, same[len(out):len(out)+name+delimiter]...)
		parts = parts[1:]
	}
	for _, part := range parts {
		out = append(out, part.Text()...)
		folded = folded || bytes.Equal(part, part.Starred())
	}
	return out, folded
}

// candidates is a heap, the most bytes first.
type candidates []candidate

// below adds the children of a node.
func (l *candidates) below(n *node, at *candidate, parent *Prefix) {
	for _, part := range n.parts() {
		c := candidate{node: n.at(part), parent: parent, db: at.db, parts: append(slices.Clip(at.parts), part)}
		if only := c.node.parts(); c.node.own == nil && len(only) == 1 {
			l.below(c.node, &c, parent)
			continue
		}
		heap.Push(l, c)
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (l *candidates) Len() int { return len(*l) }
func (l *candidates) Less(i, j int) bool {
	a, b := &(*l)[i], &(*l)[j]
	return cmp.Or(cmp.Compare(b.node.bytes, a.node.bytes), cmp.Compare(a.db, b.db),
		slices.CompareFunc(a.parts, b.parts, func(a, b KeyPath) int { return bytes.Compare(a, b) })) < 0
}
func (l *candidates) Swap(i, j int) { (*l)[i], (*l)[j] = (*l)[j], (*l)[i] }
func (l *candidates) Push(x any)    { *l = append(*l, x.(candidate)) }
func (l *candidates) Pop() any {
	last := len(*l) - 1
	c := (*l)[last]
	*l = (*l)[:last]
	return c
}
