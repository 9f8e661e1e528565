package listorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// giant emits a list that does not fit into memory. It reads the rows again: once for the links, which it
// follows to rank the nodes, and once for the elements, which it sorts by rank. Only if the links end too
// soon, it reads the rows twice more, for the holes and for the links back from the right end.
//
// Links take 4 bytes a node in memory. If they exceed three quarters of the budget, or the seqs are too far
// apart, they are sorted by seq and kept in a file.
type giant struct {
	l      *List
	links  links
	holes  holes           // of a list whose links are broken
	sorter *extsort.Sorter // elements by rank
	it     *extsort.Iterator
	chain  *chain
	last   int64 // seq of the node emitted last
}

// load follows the links and, if elements is set, sorts the elements.
func (g *giant) load(elements bool) error {
	c := g.chain
	err := g.fill()
	if err == nil {
		err = g.walk()
	}
	switch {
	case err != nil:
	case elements:
		err = g.sort()
	case c.lost() > 0:
		g.l.host.Damage(FindUnreachable, 0, "%s nodes cannot be reached from %s", record.Number(c.lost()), c.ends)
	}
	if err = errors.Join(err, g.links.close()); err != nil || !elements {
		return errors.Join(err, g.holes.close())
	}
	return nil
}

// fill reads the links.
func (g *giant) fill() error {
	o := g.l
	l := &g.links
	l.base = o.minSeq
	span := o.maxSeq - o.minSeq + 1
	if span <= o.Memory*3/4/4 && span < maxSpan {
		l.allocate(span)
		return g.l.host.Scan(func(n *Node) error {
			l.put(n.Seq, n.Next)
			return nil
		})
	}
	s, err := g.bySeq(func(n *Node) int64 { return n.Next })
	if err == nil {
		err = l.spill(s, span/4 > o.alive, o.TempDir, o.Memory/2)
	}
	return errors.Join(err, s.Close())
}

// bySeq sorts the links of the nodes by seq.
func (g *giant) bySeq(link func(n *Node) int64) (*extsort.Sorter, error) {
	s := extsort.New(extsort.Options{Memory: g.l.Memory / 4, TempDir: g.l.TempDir})
	var to [8]byte
	return s, g.l.host.Scan(func(n *Node) error {
		binary.LittleEndian.PutUint64(to[:], linkOf(link(n)))
		return s.Add(uint64(n.Seq), nil, to[:])
	})
}

// walk ranks the nodes.
func (g *giant) walk() error {
	c := g.chain
	c.at = g.l.left
	err := g.forward()
	if err == nil && c.broken() {
		err = g.mend()
	}
	if err == nil {
		c.finish()
	}
	return err
}

// mend continues where the links ended too soon: over holes, and then from the right end.
func (g *giant) mend() error {
	err := g.findHoles()
	if err == nil {
		err = g.forward()
	}
	if err == nil {
		err = g.back()
	}
	return err
}

// forward ranks the nodes reached along next, and skips holes once they are known.
func (g *giant) forward() error {
	l, c := &g.links, g.chain
	for c.at != 0 {
		seq, slot, v, err := g.readNode(c.at, false)
		if err != nil {
			return err
		}
		if !c.follow(v != noNode, v&reachedBit != 0) {
			break
		}
		if err := l.rank(slot, c.count); err != nil {
			return err
		}
		if seq != c.at {
			c.pass(seq)
		}
		c.step(int64(v))
		if v == noLink {
			n, err := g.l.host.Node(c.last)
			if err != nil {
				return err
			}
			c.at = n.Next
		}
	}
	return nil
}

// readNode returns a node's seq, its slot and the content of the slot; for a hole, those of the node after it, or
// before it if back is set.
func (g *giant) readNode(at int64, back bool) (seq, slot int64, v uint64, err error) {
	slot, v, err = g.links.readSlot(at)
	if err != nil || v != noNode {
		return at, slot, v, err
	}
	h, err := g.holes.findHole(at)
	if err != nil {
		return at, 0, noNode, err
	}
	seq = h.after
	if back {
		seq = h.before
	}
	slot, v, err = g.links.readSlot(seq)
	return seq, slot, v, err
}

// findHoles finds the holes of the list.
func (g *giant) findHoles() (err error) {
	o := g.l
	s := extsort.New(extsort.Options{Memory: o.Memory / 8, TempDir: o.TempDir})
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := addClaims(s, 0, o.left, o.right); err != nil {
		return err
	}
	err = g.l.host.Scan(func(n *Node) error { return addClaims(s, n.Seq, n.Next, n.Prev) })
	if err != nil {
		return err
	}
	return g.holes.find(s, &g.links, o.TempDir, o.Memory/8)
}

// back ranks the nodes reached from right along prev. right gets the last rank.
func (g *giant) back() error {
	l, c := &g.links, g.chain
	at := g.l.right
	if _, _, v, err := g.readNode(at, true); err != nil || v == noNode || v&reachedBit != 0 {
		return err
	}
	if err := g.turn(); err != nil {
		return err
	}
	for {
		seq, slot, v, err := g.readNode(at, true)
		if err != nil || v == noNode || v&reachedBit != 0 {
			return err
		}
		if seq != at {
			c.holes++
		}
		c.right++
		if err := l.rank(slot, c.nodes-c.right); err != nil {
			return err
		}
		at = int64(v)
		if v == noLink {
			n, err := g.l.host.Node(seq)
			if err != nil {
				return err
			}
			at = n.Prev
		}
	}
}

// turn makes the unreached nodes link to their prevs.
func (g *giant) turn() error {
	l := &g.links
	if l.mem != nil {
		return g.l.host.Scan(func(n *Node) error {
			if l.mem[n.Seq-l.base]&reachedBit32 == 0 {
				l.put(n.Seq, n.Prev)
			}
			return nil
		})
	}
	s, err := g.bySeq(func(n *Node) int64 { return n.Prev })
	if err == nil {
		err = l.turn(s)
	}
	return errors.Join(err, s.Close())
}

// sort sorts the elements by rank.
func (g *giant) sort() (err error) {
	o := g.l
	memory := max(o.Memory/8, o.Memory-g.links.size()-g.holes.size())
	g.sorter = extsort.New(extsort.Options{Memory: memory, TempDir: o.TempDir})
	var key [2 * seqLen]byte
	rank, done, err := g.ranks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	err = g.l.host.Scan(func(n *Node) error {
		v, err := rank(n.Seq)
		if err != nil {
			return err
		}
		if v&reachedBit == 0 {
			o.unreachable(n.Seq, g.chain.ends)
			return nil
		}
		binary.LittleEndian.PutUint64(key[:], uint64(n.Seq))
		binary.LittleEndian.PutUint64(key[seqLen:], uint64(n.Prev))
		return g.sorter.Add(v&^reachedBit, key[:], n.Element)
	})
	if err != nil {
		return err
	}
	if err := g.links.close(); err != nil { // frees memory for the merge
		return err
	}
	g.it, err = g.sorter.Sort()
	return err
}

// ranks returns a function for the ranks of nodes in the order of their rows. An array gives them directly. A
// file would be read in random order, since rows are ordered by their lowest byte, so it is sorted into that
// order first.
func (g *giant) ranks() (rank func(seq int64) (uint64, error), done func() error, err error) {
	l := &g.links
	if l.mem != nil {
		return func(seq int64) (uint64, error) { return l.get(seq - l.base) }, func() error { return nil }, nil
	}
	s := extsort.New(extsort.Options{Memory: g.l.Memory / 4, TempDir: g.l.TempDir})
	var rank8 [8]byte
	err = l.each(func(seq, v uint64) error {
		binary.LittleEndian.PutUint64(rank8[:], v)
		return s.Add(bits.ReverseBytes64(seq), nil, rank8[:])
	})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	it, err := s.Sort()
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return func(seq int64) (uint64, error) {
		at, _, v, err := it.Next()
		if err != nil || at != bits.ReverseBytes64(uint64(seq)) {
			return 0, errors.Join(fmt.Errorf("node %d was not there before", seq), err)
		}
		return binary.LittleEndian.Uint64(v), nil
	}, s.Close, nil
}

// emit sets one element, as a view valid until the next call. It checks the prev of nodes reached along next;
// nodes after the place where the nexts ended were reached along prev.
func (g *giant) emit(dst []record.Element) (int, error) {
	rank, key, value, err := g.it.Next()
	if err != nil {
		return 0, err
	}
	seq, prev := int64(binary.LittleEndian.Uint64(key)), int64(binary.LittleEndian.Uint64(key[seqLen:]))
	if prev != g.last && int64(rank) < g.chain.count {
		h, err := g.holes.findHole(prev)
		if err != nil {
			return 0, err
		}
		if h.before != g.last || h.after != seq {
			g.l.badPrev(seq, prev, g.last)
		}
	}
	g.last = seq
	dst[0] = record.Element{Value: value}
	return 1, nil
}

func (g *giant) close() error {
	err := g.holes.close()
	if g.sorter != nil {
		err = errors.Join(err, g.sorter.Close())
	}
	return err
}
