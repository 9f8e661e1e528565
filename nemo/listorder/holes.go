package listorder

import (
	"encoding/binary"
	"errors"

	"kvferry/internal/sys/extsort"
)

// hole describes a missing node: a seq that occurs in links but has no row. If it is the next of exactly one
// node and the prev of exactly one other, it was between these two: a narrow hole. A walk that would end in a
// hole continues after it.
//
// If several neighbours are missing, the first is the next of a node and the last is the prev of a node. Nodes
// pushed together have consecutive seqs. So among the missing seqs between two existing ones, except narrow
// holes, the seq that is the next of exactly one node and the seq that is the prev of exactly one other are
// taken as the ends of a wide hole.
//
// The meta row counts as node 0, whose next is left and whose prev is right.
type hole struct {
	seq           int64
	before, after int64 // the nodes around it; at first, the nodes whose next, or prev, it is
}

// Values of before and after that stand for no node.
const (
	noClaim   = -1
	twoClaims = -2 // or more: ambiguous
)

// claims returns the claims of a node, or of the meta row, on the seqs in its links. Callers skip seqs below
// 1.
func claims(node, next, prev int64) [2]hole {
	return [2]hole{{next, node, noClaim}, {prev, noClaim, node}}
}

// join adds the claims of another hole.
func (h *hole) join(o hole) {
	h.before, h.after = joined(h.before, o.before), joined(h.after, o.after)
}

func joined(a, b int64) int64 {
	switch {
	case a == noClaim:
		return b
	case b == noClaim:
		return a
	}
	return twoClaims
}

// between reports whether h lies between two nodes.
func (h *hole) between() bool { return h.before >= 0 && h.after >= 0 && h.before != h.after }

// holeFinder makes holes from claims in ascending order of seq.
type holeFinder struct {
	slots int64
	slot  func(i int64) (seq int64, node bool, err error) // ascending by seq
	found func(h hole, wide bool) error                   // wide holes ascend, and so do narrow ones

	i          int64
	h          hole  // of the current seq
	rest       hole  // of the seqs since the last node that are no narrow holes
	next, prev int64 // the seqs among them claimed last as a next and as a prev
}

// unclaimed is a hole before its first claim.
var unclaimed = hole{before: noClaim, after: noClaim}

func newHoleFinder(slots int64, slot func(int64) (int64, bool, error), found func(hole, bool) error) *holeFinder {
	return &holeFinder{slots: slots, slot: slot, found: found, h: unclaimed, rest: unclaimed}
}

// add adds a claim.
func (f *holeFinder) add(c hole) error {
	passed, there, err := f.advance(c.seq)
	if err == nil && c.seq != f.h.seq {
		err = f.endSeq()
	}
	if err == nil && passed {
		err = f.endRun()
	}
	if err != nil || there {
		return err
	}
	f.h.seq = c.seq
	f.h.join(c)
	return nil
}

// advance goes to the first slot at or after a seq. It reports whether it passed nodes, and whether the seq is
// a node.
func (f *holeFinder) advance(to int64) (passed, there bool, err error) {
	for ; f.i < f.slots; f.i++ {
		seq, node, err := f.slot(f.i)
		if err != nil || seq >= to {
			return passed, seq == to && node, err
		}
		passed = passed || node
	}
	return passed, false, nil
}

// endSeq completes the claims of a seq.
func (f *holeFinder) endSeq() error {
	h := f.h
	f.h = unclaimed
	if h.between() {
		return f.found(h, false)
	}
	if h.before != noClaim {
		f.next = h.seq
	}
	if h.after != noClaim {
		f.prev = h.seq
	}
	f.rest.join(h)
	return nil
}

// endRun completes the seqs between two nodes. Both ends of a wide hole get the same two nodes.
func (f *holeFinder) endRun() error {
	h := f.rest
	f.rest = unclaimed
	if !h.between() {
		return nil
	}
	for _, seq := range [...]int64{min(f.next, f.prev), max(f.next, f.prev)} {
		h.seq = seq
		if err := f.found(h, true); err != nil {
			return err
		}
	}
	return nil
}

// end ends the claims.
func (f *holeFinder) end() error {
	if err := f.endSeq(); err != nil {
		return err
	}
	return f.endRun()
}

// holes are the holes of a list, in files. The zero value is empty.
type holes struct{ narrow, wide holeTable }

// find takes the holes from sorted claims.
func (hs *holes) find(s *extsort.Sorter, l *links, dir string, memory int64) error {
	if err := errors.Join(hs.narrow.open(dir, memory/2), hs.wide.open(dir, memory/2)); err != nil {
		return err
	}
	f := newHoleFinder(l.slots(), l.slot, func(h hole, wide bool) error {
		if wide {
			return hs.wide.push(h)
		}
		return hs.narrow.push(h)
	})
	err := s.Each(func(seq uint64, side, node []byte) error { return f.add(sortedClaim(seq, side, node)) })
	if err != nil {
		return err
	}
	return f.end()
}

// findHole returns the hole of a seq, or the zero hole.
func (hs *holes) findHole(seq int64) (hole, error) {
	h, err := hs.narrow.findHole(seq)
	if err != nil || h.seq != 0 {
		return h, err
	}
	return hs.wide.findHole(seq)
}

// size returns the memory used by hs.
func (hs *holes) size() int64 { return hs.narrow.size() + hs.wide.size() }

func (hs *holes) close() error { return errors.Join(hs.narrow.close(), hs.wide.close()) }

// holeTable holds holes by seq, in files.
type holeTable struct {
	after  links // far: by the place of the seq
	before pages // by the same
}

func (t *holeTable) open(dir string, memory int64) error {
	t.after.far = true
	return errors.Join(t.after.seqs.open(dir, memory/3), t.after.to.open(dir, memory/3), t.before.open(dir, memory/3))
}

func (t *holeTable) push(h hole) error {
	return errors.Join(t.after.seqs.push(uint64(h.seq)), t.after.to.push(uint64(h.after)), t.before.push(uint64(h.before)))
}

func (t *holeTable) findHole(seq int64) (hole, error) {
	slot, ok, err := t.after.find(seq)
	if err != nil || !ok {
		return hole{}, err
	}
	after, err := t.after.to.get(slot)
	if err != nil {
		return hole{}, err
	}
	before, err := t.before.get(slot)
	return hole{seq, int64(before), int64(after)}, err
}

func (t *holeTable) size() int64 { return t.after.size() + int64(len(t.before.cache))*pageBytes }

func (t *holeTable) close() error { return errors.Join(t.after.close(), t.before.close()) }

// addClaims adds the claims of a node to a sorter of them.
func addClaims(s *extsort.Sorter, node, next, prev int64) error {
	var side [1]byte
	var n [seqLen]byte
	binary.LittleEndian.PutUint64(n[:], uint64(node))
	for i, h := range claims(node, next, prev) {
		if h.seq < 1 {
			continue
		}
		side[0] = byte(i)
		if err := s.Add(uint64(h.seq), side[:], n[:]); err != nil {
			return err
		}
	}
	return nil
}

// sortedClaim decodes a claim from a sorter.
func sortedClaim(seq uint64, side, node []byte) hole {
	n := int64(binary.LittleEndian.Uint64(node))
	return claims(n, int64(seq), int64(seq))[side[0]]
}
