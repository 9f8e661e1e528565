package nemo

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"kvferry/internal/extsort"
)

// links maps the seqs of a list to their next seqs and, once they are reached, to their ranks. A seq has a
// slot: its distance from the smallest, or where they lie far apart, its place among them.
type links struct {
	base int64    // smallest seq
	mem  []uint32 // by slot; nil: in files
	next pages    // by slot
	seqs pages    // by slot, ascending, when they lie far apart
	far  bool
	hint int64 // slot found last
}

// What a slot holds besides a seq, which is below noNext.
const (
	reachedBit = 1 << 63           // set: the rest is the rank
	noNode     = math.MaxInt64     // no node has this slot
	noNext     = math.MaxInt64 - 1 // next is a seq that no node has

	// In memory a seq is its slot plus 1, and 0 is 0.
	reachedBit32 = 1 << 31
	noNode32     = math.MaxInt32
	noNext32     = math.MaxInt32 - 1
	maxSpan      = noNext32 - 1
)

// linkOf returns what a slot holds for a node's next.
func linkOf(next int64) uint64 {
	if next < 0 || next >= noNext {
		return noNext
	}
	return uint64(next)
}

// allocate makes an array in memory for span seqs from base on.
func (l *links) allocate(span int64) {
	l.mem = make([]uint32, span)
	for i := range l.mem {
		l.mem[i] = noNode32
	}
}

// put sets the next of a seq in memory.
func (l *links) put(seq, next int64) {
	v := uint32(noNext32)
	switch {
	case next == 0:
		v = 0
	case next >= l.base && next-l.base < int64(len(l.mem)):
		v = uint32(next-l.base) + 1
	}
	l.mem[seq-l.base] = v
}

// get returns what a slot holds.
func (l *links) get(slot int64) (uint64, error) {
	if l.mem == nil {
		return l.next.get(slot)
	}
	switch v := l.mem[slot]; {
	case v&reachedBit32 != 0:
		return reachedBit | uint64(v&^reachedBit32), nil
	case v == noNode32:
		return noNode, nil
	case v == noNext32:
		return noNext, nil
	case v == 0:
		return 0, nil
	default:
		return uint64(l.base) + uint64(v) - 1, nil
	}
}

// rank marks a slot as reached.
func (l *links) rank(slot, rank int64) error {
	if l.mem == nil {
		return l.next.set(slot, reachedBit|uint64(rank))
	}
	l.mem[slot] = reachedBit32 | uint32(rank)
	return nil
}

// spill fills l from rows sorted by seq, in files.
func (l *links) spill(s *extsort.Sorter, far bool, dir string, memory int64) error {
	if l.far = far; far {
		memory /= 2
		if err := l.seqs.open(dir, memory); err != nil {
			return err
		}
	}
	if err := l.next.open(dir, memory); err != nil {
		return err
	}
	it, err := s.Sort()
	if err != nil {
		return err
	}
	for {
		seq, _, next, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if far && err == nil {
			err = l.seqs.push(seq)
		}
		for err == nil && !far && l.base+l.next.len < int64(seq) {
			err = l.next.push(noNode)
		}
		if err == nil {
			err = l.next.push(binary.LittleEndian.Uint64(next))
		}
		if err != nil {
			return err
		}
	}
}

// each calls f with all seqs in ascending order and what their slots hold.
func (l *links) each(f func(seq, v uint64) error) error {
	for i := range l.next.len {
		v, err := l.next.get(i)
		seq := uint64(l.base + i)
		if l.far && err == nil {
			seq, err = l.seqs.get(i)
		}
		if err == nil && v != noNode {
			err = f(seq, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find returns the slot of a seq. Neighbours in a list mostly are neighbours by seq.
func (l *links) find(seq int64) (int64, bool, error) {
	if !l.far {
		slot := seq - l.base
		return slot, slot >= 0 && slot < max(l.next.len, int64(len(l.mem))), nil
	}
	for _, slot := range [...]int64{l.hint + 1, l.hint - 1} {
		if slot < 0 || slot >= l.seqs.len {
			continue
		}
		if v, err := l.seqs.get(slot); err != nil || v == uint64(seq) {
			l.hint = slot
			return slot, true, err
		}
	}
	return l.search(seq)
}

// search finds a slot by bisection.
func (l *links) search(seq int64) (int64, bool, error) {
	lo, hi := int64(0), l.seqs.len
	for lo < hi {
		mid := (lo + hi) / 2
		v, err := l.seqs.get(mid)
		switch {
		case err != nil:
			return 0, false, err
		case v == uint64(seq):
			l.hint = mid
			return mid, true, nil
		case v < uint64(seq):
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false, nil
}

// size returns the memory that l takes.
func (l *links) size() int64 {
	return int64(len(l.mem))*4 + int64(len(l.next.cache)+len(l.seqs.cache))*pageBytes
}

func (l *links) close() error {
	l.mem = nil
	return errors.Join(l.next.close(), l.seqs.close())
}
