// Package listorder puts the nodes of a list one after another in the order of their links.
//
// Nodes come in any order, each with its seq and those of its neighbours:
//
//	left ─▶ seq 5 ─next─▶ seq 2 ─next─▶ seq 9 ◀─ right
//	              ◀─prev─       ◀─prev─
//
// A list is loaded before its first element: into memory up to half of the budget (see nodes), beyond that
// through sorters (see giant). It is followed from left along next. If the nexts do not lead to right, the
// walk skips missing nodes (see hole) and then appends the nodes reached from right along prev.
package listorder

import (
	"fmt"
	"math"
	"strconv"

	"kvferry/record"
)

// Kinds of findings.
const (
	// FindBrokenLink: left, or a node's next, names a missing node.
	FindBrokenLink = "list-broken-link"
	// FindPrevMismatch: a node's prev differs from the node before it.
	FindPrevMismatch = "list-prev-mismatch"
	// FindCycle: a node's next is a node before it.
	FindCycle = "list-cycle"
	// FindUnreachable: a node that cannot be reached from left nor, where the links from there end too soon,
	// over holes and from right.
	FindUnreachable = "list-unreachable-node"
	// FindTailMismatch: right is not the last node.
	FindTailMismatch = "list-tail-mismatch"
)

// seqLen is the length of a seq in bytes.
const seqLen = 8

// Node is a node of a list. Seqs start at 1; a link of 0 leads nowhere.
type Node struct {
	Seq, Prev, Next int64
	Element         []byte
}

// Host gives access to the nodes of a list.
type Host interface {
	// Scan calls f with the added nodes again, in the order of the little-endian bytes of their seqs. The
	// nodes are views, valid until f returns.
	Scan(f func(*Node) error) error
	// Node looks up one node; its element may be nil.
	Node(seq int64) (Node, error)
	// Damage reports a fault of a node, or of the list if seq is 0.
	Damage(kind string, seq int64, detail string, args ...any)
}

// Options configure memory and temporary files of lists.
type Options struct {
	Memory  int64
	TempDir string
}

// List reads lists, one at a time.
type List struct {
	Options
	host        Host
	left, right int64 // seqs of the ends
	nodes       nodes
	giant       *giant // nil when the list fits into memory
	full        bool   // it does not
	chain       chain

	alive          int64 // nodes added
	minSeq, maxSeq int64 // of them
}

// New returns a List whose nodes are read from a host.
func New(h Host, o Options) *List { return &List{host: h, Options: o} }

// Begin starts a list with the first and the last node in its meta row.
func (l *List) Begin(left, right int64) {
	l.left, l.right, l.full = left, right, false
	l.alive, l.minSeq, l.maxSeq = 0, math.MaxInt64, 0
	l.nodes.reset()
}

// Add adds a node and copies its element.
func (l *List) Add(n *Node) {
	l.alive++
	l.minSeq, l.maxSeq = min(l.minSeq, n.Seq), max(l.maxSeq, n.Seq)
	if !l.full && !l.nodes.add(n, l.Memory/2) {
		l.full = true
		l.nodes.release()
	}
}

// Len returns the number of nodes added.
func (l *List) Len() int64 { return l.alive }

// MaxSeq returns the largest seq added.
func (l *List) MaxSeq() int64 { return l.maxSeq }

// Follow follows the links of the added nodes. If elements is set, Read returns their elements. Lost nodes are
// not part of the list.
func (l *List) Follow(elements bool) (read, lost int64, err error) {
	l.chain = chain{l: l, nodes: l.alive}
	c := &l.chain
	if l.full {
		l.giant = &giant{l: l, chain: c}
		err = l.giant.load(elements)
	} else {
		l.walk(c)
	}
	return c.count + c.right, c.lost(), err
}

// Read sets elements in the order of the list, as views that live until the next call.
func (l *List) Read(dst []record.Element) (int, error) {
	if l.giant != nil {
		return l.giant.emit(dst)
	}
	return l.nodes.emit(dst)
}

// End closes the files of a list that does not fit into memory.
func (l *List) End() error {
	if l.giant == nil {
		return nil
	}
	err := l.giant.close()
	l.giant = nil
	return err
}

// walk follows the links of a list in memory and reports damage to them.
func (l *List) walk(c *chain) {
	ns := &l.nodes
	ns.index()
	ns.at, c.at = l.left, l.left
	l.forward(c)
	if c.broken() {
		ns.findHoles(l.left, l.right)
		l.forward(c)
		ns.link(c.last, ns.back(c))
	}
	c.finish()
	for i := range ns.all {
		if n := &ns.all[i]; !n.reached {
			l.unreachable(n.seq, c.ends)
		}
	}
	ns.left = c.count + c.right
}

// forward follows the nexts, over holes once they are known.
func (l *List) forward(c *chain) {
	ns := &l.nodes
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
			l.badPrev(c.at, n.prev, c.last)
		}
		c.step(n.next)
	}
}

// unreachable reports a node that cannot be reached from the ends.
func (l *List) unreachable(seq int64, ends string) {
	l.host.Damage(FindUnreachable, seq, "node %d cannot be reached from %s", seq, ends)
}

func (l *List) badPrev(seq, prev, want int64) {
	l.host.Damage(FindPrevMismatch, seq, "node %d has prev %d, but the node before it is %d", seq, prev, want)
}

// chain is a walk along the links of a list, starting at left. If it ends before right, it continues over
// holes; then the nodes that lead to right are appended, as the engine serves them from that end.
type chain struct {
	l     *List
	at    int64  // seq to go to, 0 at the end
	last  int64  // seq of the node before it, 0 at the start
	count int64  // nodes passed
	right int64  // nodes passed backwards from right
	holes int64  // skipped
	nodes int64  // nodes there are
	kind  string // of the finding about the place where the nexts ended too soon
	where string // that place, "" if they did not end too soon
	ends  string // the ends from which unreached nodes could not be reached
}

// follow reports whether the walk continues at the node at, or at the node after the hole. found and reached
// are the state of that node.
func (c *chain) follow(found, reached bool) bool {
	switch {
	case c.kind != "": // the finding is about the first end of the walk
	case !found:
		c.kind = FindBrokenLink
	case reached:
		c.kind = FindCycle
	}
	return found && !reached
}

// pass skips the hole at, to the node after it.
func (c *chain) pass(to int64) {
	c.holes++
	c.at = to
}

// step passes the node at.
func (c *chain) step(next int64) {
	c.count++
	c.last, c.at = c.at, next
}

// broken reports whether the walk ended before the end that the meta row names, and records where.
func (c *chain) broken() bool {
	right := c.l.right
	if c.at == 0 && c.last == right {
		return false
	}
	from := "left"
	if c.last != 0 {
		from = "next of node " + strconv.FormatInt(c.last, 10)
	}
	switch c.kind {
	case FindBrokenLink:
		c.where = fmt.Sprintf("%s is %d, which does not exist", from, c.at)
	case FindCycle:
		c.where = fmt.Sprintf("%s is %d, which comes before it", from, c.at)
	default:
		c.kind, c.where = FindTailMismatch, fmt.Sprintf("right is %d, but the last node is %d", right, c.last)
	}
	return true
}

// lost returns the number of nodes not passed.
func (c *chain) lost() int64 { return c.nodes - c.count - c.right }

// finish reports where the walk ended too soon.
func (c *chain) finish() {
	if c.lost() > 0 {
		c.ends = "left " + strconv.FormatInt(c.l.left, 10)
		if c.where != "" {
			c.ends += " or right " + strconv.FormatInt(c.l.right, 10)
		}
	}
	if c.where == "" {
		return
	}
	what := fmt.Sprintf("%s; nodes read: %s from the left end, %s from the right end", c.where, record.Number(c.count),
		record.Number(c.right))
	if c.holes > 0 {
		what += "; gaps skipped: " + strconv.FormatInt(c.holes, 10)
	}
	c.l.host.Damage(c.kind, 0, "%s", what)
}
