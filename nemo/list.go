package nemo

import (
	"encoding/binary"
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
	if r.giant == nil {
		return nil
	}
	err := r.giant.close()
	r.giant = nil
	return err
}

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
	c := chain{r: r, left: int64(len(ns.all))}
	for c.at = r.meta.Left; c.at != 0; {
		i, ok := ns.find(c.at)
		if !c.follow(ok, ok && ns.all[i].reached) {
			break
		}
		n := &ns.all[i]
		n.reached = true
		if n.prev != c.last {
			r.badPrev(c.at, n.prev, c.last)
		}
		c.step(n.next)
	}
	c.finish()
	for i := range ns.all {
		if n := &ns.all[i]; !n.reached {
			r.unreachable(n.seq)
		}
	}
	ns.start(r.meta.Left, c.count)
}

// unreachable reports a node that left does not lead to.
func (r *listReader) unreachable(seq int64) {
	r.damage(FindListUnreachable, r.placeOf(seq), "node %d is not reached from left %d", seq, r.meta.Left)
}

func (r *listReader) badPrev(seq, prev, want int64) {
	r.damage(FindListPrevMismatch, r.placeOf(seq), "node %d says prev %d, the node before it is %d", seq, prev, want)
}

// placeOf looks up where a node's row stands.
func (r *listReader) placeOf(seq int64) record.Place {
	return r.lookup(AppendListKey(nil, ListKey{r.key, seq}))
}

// chain is a walk along the links of a list.
type chain struct {
	r     *listReader
	at    int64 // seq to go to, 0 at the end
	last  int64 // seq of the node before it, 0 for none
	count int64 // nodes passed
	left  int64 // nodes there are
}

// follow reports whether the walk goes on to the node at, which was found or not and reached before or
// not.
func (c *chain) follow(found, reached bool) bool {
	if found && !reached {
		return true
	}
	from := "left"
	if c.last != 0 {
		from = "next of node " + strconv.FormatInt(c.last, 10)
	}
	if !found {
		c.r.damage(FindListBrokenLink, c.r.place, "%s is %d, which is not there", from, c.at)
	} else {
		c.r.damage(FindListCycle, c.r.place, "%s is %d, which comes before it", from, c.at)
	}
	return false
}

// step passes the node at.
func (c *chain) step(next int64) {
	c.count++
	c.last, c.at = c.at, next
}

// finish compares the walk with the meta row and classifies the nodes.
func (c *chain) finish() {
	r := c.r
	if c.at == 0 && r.meta.Right != c.last {
		r.damage(FindListTailMismatch, r.place, "right is %d, the last node is %d", r.meta.Right, c.last)
	}
	r.settles += c.count
	r.tally.Rows[record.Orphan] += c.left - c.count
}
