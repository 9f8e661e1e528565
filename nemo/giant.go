package nemo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"kvferry/internal/extsort"
	"kvferry/record"
)

// giant emits a list that does not fit into memory. Its rows are read again: once for the links, which are
// followed to give each node its rank, and once for the elements, which are sorted by rank.
//
// Links take 4 bytes a node in memory. When that is beyond three quarters of the budget, or the seqs lie too
// far apart, they are sorted by seq and kept in a file.
type giant struct {
	r      *listReader
	links  links
	sorter *extsort.Sorter // elements by rank
	it     *extsort.Iterator
	last   int64 // seq of the node emitted last
	lost   int64 // nodes that left does not lead to
}

// load follows the links and, when elements are wanted, sorts them.
func (g *giant) load(elements bool) error {
	err := g.fill()
	if err == nil {
		err = g.walk()
	}
	switch {
	case err != nil:
	case elements:
		err = g.sort()
	case g.lost > 0:
		g.r.damage(FindListUnreachable, g.r.place, "%d nodes are not reached from left %d", g.lost, g.r.meta.Left)
	}
	return errors.Join(err, g.links.close())
}

// scan reads the rows of the list again.
func (g *giant) scan(f func(seq int64, n *Node) error) (err error) {
	r := g.r
	from, to := r.ts.data.Layout().Rows(r.key)
	it, err := r.ts.keyspace.Rows(from, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for {
		raw, value, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := DecodeNode(value)
		rest := raw[min(len(from), len(raw)):]
		if err != nil || !isSeq(rest) || n.Version < r.meta.Version {
			continue // classified by the first look
		}
		if err := f(int64(binary.LittleEndian.Uint64(rest)), &n); err != nil {
			return err
		}
	}
}

// fill reads the links.
func (g *giant) fill() error {
	r := g.r
	l := &g.links
	l.base = r.minSeq
	span := r.maxSeq - r.minSeq + 1
	if span <= r.memory*3/4/4 && span < maxSpan {
		l.allocate(span)
		return g.scan(func(seq int64, n *Node) error {
			l.put(seq, n.Next)
			return nil
		})
	}
	s := extsort.New(extsort.Options{Memory: r.memory / 4, TempDir: r.env.TempDir})
	var next [8]byte
	err := g.scan(func(seq int64, n *Node) error {
		binary.LittleEndian.PutUint64(next[:], linkOf(n.Next))
		return s.Add(uint64(seq), nil, next[:])
	})
	if err == nil {
		err = l.spill(s, span/4 > r.alive, r.env.TempDir, r.memory/2)
	}
	return errors.Join(err, s.Close())
}

// walk ranks the nodes.
func (g *giant) walk() error {
	l := &g.links
	c := chain{r: g.r, left: g.r.alive}
	for c.at = g.r.meta.Left; c.at != 0; {
		slot, ok, err := l.find(c.at)
		if err != nil {
			return err
		}
		var v uint64 = noNode
		if ok {
			if v, err = l.get(slot); err != nil {
				return err
			}
		}
		if !c.follow(v != noNode, v&reachedBit != 0) {
			break
		}
		if err := l.rank(slot, c.count); err != nil {
			return err
		}
		if c.step(int64(v)); v == noNext {
			if c.at, err = g.nextOf(c.last); err != nil {
				return err
			}
		}
	}
	c.finish()
	g.lost = c.left - c.count
	return nil
}

// nextOf looks up the next of a node, which links keep only when it can be.
func (g *giant) nextOf(seq int64) (next int64, err error) {
	key := AppendListKey(nil, ListKey{g.r.key, seq})
	it, err := g.r.ts.keyspace.Rows(key, append(bytes.Clone(key), 0))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	_, value, err := it.Next()
	if err != nil {
		return 0, err
	}
	n, err := DecodeNode(value)
	return n.Next, err
}

// sort sorts the elements by rank.
func (g *giant) sort() (err error) {
	r := g.r
	g.sorter = extsort.New(extsort.Options{Memory: max(r.memory/4, r.memory-g.links.size()), TempDir: r.env.TempDir})
	var key [2 * seqLen]byte
	rank, done, err := g.ranks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	err = g.scan(func(seq int64, n *Node) error {
		v, err := rank(seq)
		if err != nil {
			return err
		}
		if v&reachedBit == 0 {
			r.unreachable(seq)
			return nil
		}
		binary.LittleEndian.PutUint64(key[:], uint64(seq))
		binary.LittleEndian.PutUint64(key[seqLen:], uint64(n.Prev))
		return g.sorter.Add(v&^reachedBit, key[:], n.Element)
	})
	if err != nil {
		return err
	}
	if err := g.links.close(); err != nil { // its memory goes to the merge
		return err
	}
	g.it, err = g.sorter.Sort()
	return err
}

// ranks returns what gives the ranks of nodes in the order of their rows. An array answers by itself; a
// file would be read all over, since rows are in the order of their lowest byte, so it is sorted that way
// first.
func (g *giant) ranks() (rank func(seq int64) (uint64, error), done func() error, err error) {
	l := &g.links
	if l.mem != nil {
		return func(seq int64) (uint64, error) { return l.get(seq - l.base) }, func() error { return nil }, nil
	}
	s := extsort.New(extsort.Options{Memory: g.r.memory / 4, TempDir: g.r.env.TempDir})
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
			return 0, errors.Join(fmt.Errorf("list %s: node %d was not there before", record.Quote(g.r.key), seq), err)
		}
		return binary.LittleEndian.Uint64(v), nil
	}, s.Close, nil
}

// emit sets one element, as a view that lives until the next call, and checks its node's prev.
func (g *giant) emit(dst []record.Element) (int, error) {
	_, key, value, err := g.it.Next()
	if err != nil {
		return 0, err
	}
	seq, prev := int64(binary.LittleEndian.Uint64(key)), int64(binary.LittleEndian.Uint64(key[seqLen:]))
	if prev != g.last {
		g.r.badPrev(seq, prev, g.last)
	}
	g.last = seq
	dst[0] = record.Element{Value: value}
	return 1, nil
}

func (g *giant) close() error {
	if g.sorter == nil {
		return nil
	}
	return g.sorter.Close()
}
