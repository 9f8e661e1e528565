package nemo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"kvferry/record"
	"kvferry/store"
)

// listReader reads lists. Nodes lie in the order of their little-endian seqs, elements are wanted in that
// of the links, so each list is loaded before its first element: into memory up to half of the budget (see
// nodes), beyond that by way of sorters (see giant).
type listReader struct {
	*collection
	nodes  nodes
	giant  *giant // of the current record, nil when it fits into memory
	loaded bool

	alive          int64 // node rows of the current record
	minSeq, maxSeq int64 // of them
}

func openLists(p *pass) (record.Reader, error) {
	c, err := openCollection(p)
	if err != nil {
		return nil, err
	}
	return &listReader{collection: c}, nil
}

// Next finishes the current record and moves to the next one.
func (r *listReader) Next() (*record.Header, error) {
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := r.next(); err != nil {
		return nil, err
	}
	r.loaded = false
	return &r.h, nil
}

// Read returns the next elements in list order.
func (r *listReader) Read(dst []record.Element) (int, error) {
	if r.drained {
		return 0, io.EOF
	}
	if err := r.load(true); err != nil {
		return 0, err
	}
	var n int
	var err error
	if r.giant != nil {
		n, err = r.giant.emit(dst)
	} else {
		n, err = r.nodes.emit(dst)
	}
	if err == io.EOF {
		r.drained = true
	}
	return n, err
}

// finish classifies the rows of the current record and settles it.
func (r *listReader) finish() error {
	if !r.drained {
		if err := r.load(false); err != nil {
			return err
		}
		r.drained = true
	}
	r.settle()
	return r.drop()
}

// drop closes the files of a list that does not fit into memory.
func (r *listReader) drop() error {
	if r.giant == nil {
		return nil
	}
	err := r.giant.close()
	r.giant = nil
	return err
}

// Close ends reading, also in the middle of a list.
func (r *listReader) Close() error { return errors.Join(r.drop(), r.collection.Close()) }

// load reads the rows of the current record, with the elements or without, and follows the links.
func (r *listReader) load(elements bool) error {
	if r.loaded {
		return nil
	}
	r.loaded = true
	r.alive, r.minSeq, r.maxSeq = 0, math.MaxInt64, 0
	r.nodes.reset()
	full := false
	var n Node
	for {
		rows, skip, err := r.rows.Batch(listBatch)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			seq, ok := r.row(&n, rows, i, skip)
			if !ok {
				continue
			}
			r.alive++
			r.minSeq, r.maxSeq = min(r.minSeq, seq), max(r.maxSeq, seq)
			if !elements {
				n.Element = nil
			}
			if !full && !r.nodes.add(seq, &n, r.memory/2) {
				full = true
				r.nodes.release()
			}
		}
	}
	r.checkCount(r.alive)
	if r.meta.NextSeq <= r.maxSeq {
		r.damage(FindListNextSeq, r.place, "next_seq is %d, node %d is there", r.meta.NextSeq, r.maxSeq)
	}
	if full {
		r.giant = &giant{r: r}
		return r.giant.load(elements)
	}
	r.walk()
	return nil
}

// listBatch is how many rows are read at once.
const listBatch = 64

// row decodes row i of a batch, whose element is a view. A row that is not alive is classified.
func (r *listReader) row(n *Node, rows []store.Row, i, skip int) (seq int64, ok bool) {
	rest, raw := rows[i].Key[skip:], rows[i].Value
	if err := n.decode(raw); err != nil || !isSeq(rest) {
		r.check(kindListNode, rows[i].Key, raw, r.rows.PlaceAt(i))
		return 0, false
	}
	if n.Version < r.meta.Version {
		r.tally.Rows[record.Stale]++
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(rest)), true
}

// isSeq reports what decodeSeq accepts.
func isSeq(rest []byte) bool {
	return len(rest) == seqLen && int64(binary.LittleEndian.Uint64(rest)) >= 1
}

// walk follows the links of a list in memory and reports what is wrong with them.
func (r *listReader) walk() {
	ns := &r.nodes
	ns.index()
	ns.at = r.meta.Left
	c := chain{r: r, at: r.meta.Left, nodes: int64(len(ns.all))}
	r.forward(&c)
	if c.broken() {
		ns.findHoles(&r.meta)
		r.forward(&c)
		ns.link(c.last, ns.back(&c))
	}
	c.finish()
	for i := range ns.all {
		if n := &ns.all[i]; !n.reached {
			r.unreachable(n.seq, c.ends)
		}
	}
	ns.left = c.count + c.right
}

// forward follows the nexts, and passes over holes once they are known.
func (r *listReader) forward(c *chain) {
	ns := &r.nodes
	for c.at != 0 {
		i, ok := ns.find(c.at)
		if !ok {
			i, ok = ns.find(ns.hole(c.at).after)
		}
		if !c.follow(ok, ok && ns.all[i].reached) {
			return
		}
		n := &ns.all[i]
		n.reached = true
		if n.seq != c.at {
			ns.link(c.last, n.seq)
			c.pass(n.seq)
		} else if n.prev != c.last {
			r.badPrev(c.at, n.prev, c.last)
		}
		c.step(n.next)
	}
}

// unreachable reports a node that the ends do not lead to.
func (r *listReader) unreachable(seq int64, ends string) {
	r.damage(FindListUnreachable, r.placeOf(seq), "node %d is not reached from %s", seq, ends)
}

func (r *listReader) badPrev(seq, prev, want int64) {
	r.damage(FindListPrevMismatch, r.placeOf(seq), "node %d says prev %d, the node before it is %d", seq, prev, want)
}

// placeOf looks up where a node's row stands.
func (r *listReader) placeOf(seq int64) record.Place {
	return r.lookup(AppendListKey(nil, ListKey{r.key, seq}))
}

// chain is a walk along the links of a list, from left on. Where it ends before right, it goes on over holes, and
// then the nodes that lead to right are what comes behind the place where it ends: the engine serves them from that end.
type chain struct {
	r     *listReader
	at    int64  // seq to go to, 0 at the end
	last  int64  // seq of the node before it, 0 for none
	count int64  // nodes passed
	right int64  // nodes passed from right back
	holes int64  // passed over
	nodes int64  // nodes there are
	kind  string // of the finding about the place where the nexts ended too soon
	where string // that place, "" when they did not
	ends  string // from which the nodes that were not passed were looked for
}

// follow reports whether the walk goes on to the node at, or behind it, which was found or not and reached before
// or not.
func (c *chain) follow(found, reached bool) bool {
	switch {
	case c.kind != "": // it is about where the walk ended first
	case !found:
		c.kind = FindListBrokenLink
	case reached:
		c.kind = FindListCycle
	}
	return found && !reached
}

// pass passes over the hole at to the node behind it.
func (c *chain) pass(to int64) {
	c.holes++
	c.at = to
}

// step passes the node at.
func (c *chain) step(next int64) {
	c.count++
	c.last, c.at = c.at, next
}

// broken reports whether the walk ended before the list does by its meta row, and notes where.
func (c *chain) broken() bool {
	right := c.r.meta.Right
	if c.at == 0 && c.last == right {
		return false
	}
	from := "left"
	if c.last != 0 {
		from = "next of node " + strconv.FormatInt(c.last, 10)
	}
	switch c.kind {
	case FindListBrokenLink:
		c.where = fmt.Sprintf("%s is %d, which is not there", from, c.at)
	case FindListCycle:
		c.where = fmt.Sprintf("%s is %d, which comes before it", from, c.at)
	default:
		c.kind, c.where = FindListTailMismatch, fmt.Sprintf("right is %d, the last node is %d", right, c.last)
	}
	return true
}

// lost returns how many nodes were not passed.
func (c *chain) lost() int64 { return c.nodes - c.count - c.right }

// finish says where the walk ended too soon and classifies the nodes.
func (c *chain) finish() {
	r := c.r
	r.settles += c.count + c.right
	r.tally.Rows[record.Orphan] += c.lost()
	if c.lost() > 0 {
		c.ends = "left " + strconv.FormatInt(r.meta.Left, 10)
		if c.where != "" {
			c.ends += " or right " + strconv.FormatInt(r.meta.Right, 10)
		}
	}
	if c.where == "" {
		return
	}
	what := fmt.Sprintf("%s; nodes read: %d from the left end, %d from the right end", c.where, c.count, c.right)
	if c.holes > 0 {
		what += "; holes passed over: " + strconv.FormatInt(c.holes, 10)
	}
	r.damage(c.kind, r.place, "%s", what)
}
