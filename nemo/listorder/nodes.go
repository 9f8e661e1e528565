package listorder

import (
	"cmp"
	"io"
	"math"
	"slices"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
)

// Sizes for the budget.
const (
	nodeSize   = 48 // of a node and its place in the index
	minNodes   = 256
	chunkSize  = 256 << 10
	smallChunk = 64 << 10
)

// nodes is a list in memory. Its memory is reused for the next list.
type nodes struct {
	all    []node
	chunks [][]byte // elements; chunks after cur are empty
	cur    int
	bytes  int64 // of chunks

	base  int64   // smallest seq
	dense []int32 // seq - base to index in all plus 1; empty: all is sorted by seq

	holes []hole // by seq, of a list whose links are broken

	at   int64 // seq of the next node to emit
	left int64 // nodes to emit
}

// node is a node row; its element is in a chunk.
type node struct {
	seq, prev, next int64
	chunk           uint32
	off, len        uint32
	reached         bool
}

// reset empties ns and keeps its memory, except chunks of large elements.
func (ns *nodes) reset() {
	kept := ns.chunks[:0]
	for _, c := range ns.chunks {
		if cap(c) > bufpool.Large {
			ns.bytes -= int64(cap(c))
			continue
		}
		kept = append(kept, c[:0])
	}
	clear(ns.chunks[len(kept):])
	ns.chunks = kept
	ns.all, ns.cur = ns.all[:0], 0
	ns.dense, ns.holes, ns.left = ns.dense[:0], nil, 0
}

// release empties ns and frees its memory.
func (ns *nodes) release() { *ns = nodes{} }

// add adds a node and copies its element. It returns false if that would take more than memory, except for the
// first node.
func (ns *nodes) add(n *Node, memory int64) bool {
	size := len(n.Element)
	if len(ns.all) > 0 && (ns.used(size) > memory || len(ns.all) >= math.MaxInt32) {
		return false
	}
	ns.room(size)
	if len(ns.all) == cap(ns.all) {
		ns.all = slices.Grow(ns.all, max(minNodes, len(ns.all)))
	}
	c := ns.chunks[ns.cur]
	ns.all = ns.all[:len(ns.all)+1]
	x := &ns.all[len(ns.all)-1] // set field by field: a struct would be built elsewhere and copied
	x.seq, x.prev, x.next, x.reached = n.Seq, n.Prev, n.Next, false
	x.chunk, x.off, x.len = uint32(ns.cur), uint32(len(c)), uint32(size)
	ns.chunks[ns.cur] = append(c, n.Element...)
	return true
}

// used returns the memory of ns after adding an element of size bytes.
func (ns *nodes) used(size int) int64 {
	n := ns.bytes + int64(cap(ns.all))*nodeSize
	if len(ns.all) == cap(ns.all) {
		n += int64(len(ns.all)) * nodeSize
	}
	if c := ns.chunks[ns.cur]; size > cap(c)-len(c) && ns.cur == len(ns.chunks)-1 {
		n += int64(max(size, chunkSize))
	}
	return n
}

// room makes current a chunk with room for n bytes.
func (ns *nodes) room(n int) {
	for ; ns.cur < len(ns.chunks); ns.cur++ {
		if c := ns.chunks[ns.cur]; n <= cap(c)-len(c) {
			return
		}
	}
	size := max(n, chunkSize)
	if len(ns.chunks) == 0 && n <= smallChunk {
		size = smallChunk // most lists are short
	}
	ns.chunks = append(ns.chunks, make([]byte, 0, size))
	ns.bytes += int64(size)
}

// index prepares find: an array over the seqs if they are close together, else sorted nodes.
func (ns *nodes) index() {
	if len(ns.all) == 0 {
		return
	}
	lo, hi := ns.all[0].seq, ns.all[0].seq
	for i := range ns.all {
		lo, hi = min(lo, ns.all[i].seq), max(hi, ns.all[i].seq)
	}
	if span := hi - lo; span < 2*int64(len(ns.all))+64 {
		ns.base = lo
		ns.dense = slices.Grow(ns.dense[:0], int(span)+1)[:span+1]
		clear(ns.dense)
		for i := range ns.all {
			ns.dense[ns.all[i].seq-lo] = int32(i) + 1
		}
		return
	}
	ns.dense = ns.dense[:0]
	slices.SortFunc(ns.all, func(a, b node) int { return cmp.Compare(a.seq, b.seq) })
}

// find returns the index of the node of a seq.
func (ns *nodes) find(seq int64) (int, bool) {
	if len(ns.dense) == 0 {
		return slices.BinarySearchFunc(ns.all, seq, func(n node, seq int64) int { return cmp.Compare(n.seq, seq) })
	}
	if seq < ns.base || seq-ns.base >= int64(len(ns.dense)) {
		return 0, false
	}
	i := int(ns.dense[seq-ns.base]) - 1
	return i, i >= 0
}

// findHoles finds the holes of a list. They take no more memory than the nodes: a node makes at most two
// claims, and the holes, which are no more than their claims, overwrite them in place.
func (ns *nodes) findHoles(left, right int64) {
	var n int
	ns.claims(left, right, func(hole) { n++ })
	all := make([]hole, 0, n)
	ns.claims(left, right, func(h hole) { all = append(all, h) })
	bySeq := func(a, b hole) int { return cmp.Compare(a.seq, b.seq) }
	slices.SortFunc(all, bySeq)
	ns.holes = all[:0]
	f := newHoleFinder(ns.slots(), ns.slot, func(h hole, _ bool) error {
		ns.holes = append(ns.holes, h)
		return nil
	})
	for _, h := range all {
		f.add(h)
	}
	f.end()
	slices.SortFunc(ns.holes, bySeq)
}

// slots returns the number of slots.
func (ns *nodes) slots() int64 {
	if len(ns.dense) == 0 {
		return int64(len(ns.all))
	}
	return int64(len(ns.dense))
}

// slot returns the seq of a slot and whether a node has it.
func (ns *nodes) slot(i int64) (seq int64, node bool, err error) {
	if len(ns.dense) == 0 {
		return ns.all[i].seq, true, nil
	}
	return ns.base + i, ns.dense[i] != 0, nil
}

// claims calls f with all claims on seqs that no node has.
func (ns *nodes) claims(left, right int64, f func(hole)) {
	missing := func(all [2]hole) {
		for _, h := range all {
			if _, ok := ns.find(h.seq); !ok && h.seq > 0 {
				f(h)
			}
		}
	}
	missing(claims(0, left, right))
	for i := range ns.all {
		n := &ns.all[i]
		missing(claims(n.seq, n.next, n.prev))
	}
}

// hole returns the hole of a seq, or the zero hole.
func (ns *nodes) hole(seq int64) hole {
	i, ok := slices.BinarySearchFunc(ns.holes, seq, func(h hole, seq int64) int { return cmp.Compare(h.seq, seq) })
	if !ok {
		return hole{}
	}
	return ns.holes[i]
}

// back follows the links from right backwards, over holes too, up to a node that is missing or already
// reached. It returns the seq of the first node of this part, whose nexts it sets to lead to right.
func (ns *nodes) back(c *chain) (first int64) {
	for at := c.l.right; ; c.right++ {
		i, ok := ns.find(at)
		if !ok {
			i, ok = ns.find(ns.hole(at).before)
		}
		if !ok || ns.all[i].reached {
			return first
		}
		x := &ns.all[i]
		if x.seq != at {
			c.holes++
		}
		x.reached, x.next = true, first
		first, at = x.seq, x.prev
	}
}

// link makes emit continue with a node after another one, or start with it if from is 0.
func (ns *nodes) link(from, to int64) {
	if i, ok := ns.find(from); ok {
		ns.all[i].next = to
	} else {
		ns.at = to
	}
}

// emit sets elements of dst, which live until reset.
func (ns *nodes) emit(dst []record.Element) (int, error) {
	if ns.left == 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(dst) && ns.left > 0 {
		i, _ := ns.find(ns.at)
		e := &ns.all[i]
		d := &dst[n]
		d.Name, d.Value, d.Score = nil, ns.chunks[e.chunk][e.off:e.off+e.len:e.off+e.len], 0
		ns.at = e.next
		ns.left--
		n++
	}
	return n, nil
}
