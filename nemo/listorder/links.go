package listorder

import (
	"encoding/binary"
	"errors"
	"math"

	"kvferry/internal/sys/extsort"
)

// links maps the seqs of a list to the seqs that they link to, next or prev, and, once reached, to their
// ranks. A seq has a slot: its distance from the smallest seq or, if the seqs are far apart, its index among
// them.
type links struct {
	base int64    // smallest seq
	mem  []uint32 // by slot; nil: in files
	to   pages    // by slot
	seqs pages    // by slot, ascending; only if they are far apart
	far  bool
	hint int64 // slot found last
}

// Values and bits of a slot besides seqs, which are below noLink.
const (
	reachedBit = 1 << 63           // set: the rest is the rank
	noNode     = math.MaxInt64     // no node has this slot
	noLink     = math.MaxInt64 - 1 // the link is a seq that no node has

	// In memory a seq is its slot plus 1, and 0 is 0.
	reachedBit32 = 1 << 31
	noNode32     = math.MaxInt32
	noLink32     = math.MaxInt32 - 1
	maxSpan      = noLink32 - 1
)

// linkOf returns the slot content for a node's link.
func linkOf(to int64) uint64 {
	if to < 0 || to >= noLink {
		return noLink
	}
	return uint64(to)
}

// allocate makes an array in memory for span seqs from base on.
func (l *links) allocate(span int64) {
	l.mem = make([]uint32, span)
	for i := range l.mem {
		l.mem[i] = noNode32
	}
}

// put sets the link of a seq in memory.
func (l *links) put(seq, to int64) {
	v := uint32(noLink32)
	switch {
	case to == 0:
		v = 0
	case to >= l.base && to-l.base < int64(len(l.mem)):
		v = uint32(to-l.base) + 1
	}
	l.mem[seq-l.base] = v
}

// get returns the content of a slot.
func (l *links) get(slot int64) (uint64, error) {
	if l.mem == nil {
		return l.to.get(slot)
	}
	switch v := l.mem[slot]; {
	case v&reachedBit32 != 0:
		return reachedBit | uint64(v&^reachedBit32), nil
	case v == noNode32:
		return noNode, nil
	case v == noLink32:
		return noLink, nil
	case v == 0:
		return 0, nil
	default:
		return uint64(l.base) + uint64(v) - 1, nil
	}
}

// rank marks a slot as reached.
func (l *links) rank(slot, rank int64) error {
	if l.mem == nil {
		return l.to.set(slot, reachedBit|uint64(rank))
	}
	l.mem[slot] = reachedBit32 | uint32(rank)
	return nil
}

// spill fills l from rows sorted by seq, in files.
func (l *links) spill(s *extsort.Sorter, far bool, dir string, memory int64) error {
	l.far = far
	if far {
		memory /= 2
		if err := l.seqs.open(dir, memory); err != nil {
			return err
		}
	}
	if err := l.to.open(dir, memory); err != nil {
		return err
	}
	return s.Each(func(seq uint64, _, to []byte) (err error) {
		if far {
			err = l.seqs.push(seq)
		}
		for err == nil && !far && l.base+l.to.len < int64(seq) {
			err = l.to.push(noNode)
		}
		if err == nil {
			err = l.to.push(binary.LittleEndian.Uint64(to))
		}
		return err
	})
}

// turn replaces the links of unreached seqs by the links of rows sorted by seq, in files.
func (l *links) turn(s *extsort.Sorter) error {
	return s.Each(func(seq uint64, _, to []byte) error {
		slot, v, err := l.readSlot(int64(seq))
		if err == nil && v&reachedBit == 0 {
			err = l.to.set(slot, binary.LittleEndian.Uint64(to))
		}
		return err
	})
}

// each calls f with all seqs in ascending order and the contents of their slots.
func (l *links) each(f func(seq, v uint64) error) error {
	for i := range l.to.len {
		v, err := l.to.get(i)
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

// slots returns the number of slots.
func (l *links) slots() int64 { return max(l.to.len, int64(len(l.mem))) }

// slot returns the seq of a slot and whether a node has it.
func (l *links) slot(i int64) (seq int64, node bool, err error) {
	if l.far {
		v, err := l.seqs.get(i)
		return int64(v), true, err
	}
	v, err := l.get(i)
	return l.base + i, v != noNode, err
}

// readSlot returns the slot of a seq and its content.
func (l *links) readSlot(seq int64) (slot int64, v uint64, err error) {
	slot, ok, err := l.find(seq)
	if err != nil || !ok {
		return 0, noNode, err
	}
	v, err = l.get(slot)
	return slot, v, err
}

// find returns the slot of a seq. Neighbours in a list mostly are neighbours by seq.
func (l *links) find(seq int64) (int64, bool, error) {
	if !l.far {
		slot := seq - l.base
		return slot, slot >= 0 && slot < l.slots(), nil
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

// size returns the memory used by l.
func (l *links) size() int64 {
	return int64(len(l.mem))*4 + int64(len(l.to.cache)+len(l.seqs.cache))*pageBytes
}

func (l *links) close() error {
	l.mem = nil
	return errors.Join(l.to.close(), l.seqs.close())
}
