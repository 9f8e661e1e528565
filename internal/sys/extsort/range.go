package extsort

import (
	"bytes"
	"sort"
)

const (
	// maxMarks bounds the index of a run, and maxMark a key in it. markSize is the memory of an entry.
	maxMarks = 1 << 10
	maxMark  = 64
	markSize = maxMark + 32
	minStep  = 64 << 10
)

// mark is the offset of a frame and the start of its first key.
type mark struct {
	off int64
	key []byte
}

// mark adds a frame to the index. If the index is full, it drops every second entry.
func (r *run) mark(off int64, key []byte) {
	if n := len(r.index); n > 0 && off-r.index[n-1].off < r.step {
		return
	}
	r.index = append(r.index, mark{off, bytes.Clone(key[:min(len(key), maxMark)])})
	if len(r.index) < r.most {
		return
	}
	for i := range r.most / 2 {
		r.index[i] = r.index[2*i]
	}
	r.index = r.index[:r.most/2]
	r.step = 2 * max(r.step, int64(pointFrame))
}

// before returns the offset of a frame such that all keys before it are less than lo.
func (r *run) before(lo []byte) int64 {
	lo = lo[:min(len(lo), maxMark)]
	if n := sort.Search(len(r.index), func(i int) bool { return bytes.Compare(r.index[i].key, lo) >= 0 }); n > 0 {
		return r.index[n-1].off
	}
	return r.off
}

// Range returns the rows with lo <= key < hi; nil is open. Call Prepare first. All rows must have prefix 0 and
// bytewise order, and none may be loaded. Ranges can be read concurrently, each by one goroutine.
func (s *Sorter) Range(lo, hi []byte) (*Iterator, error) {
	it := &Iterator{s: s, hi: hi}
	if len(s.runs) == 0 {
		it.next = sort.Search(len(s.items), func(i int) bool { return bytes.Compare(s.key(s.items[i]), lo) >= 0 })
		return it, nil
	}
	if s.points {
		it.span = pointFrame
	}
	runs := append([]run(nil), s.runs...)
	for i := range runs {
		runs[i].off = runs[i].before(lo)
	}
	if err := it.open(runs); err != nil {
		return nil, err
	}
	for len(it.heap) > 0 && bytes.Compare(it.heap[0].key, lo) < 0 {
		if err := it.advance(); err != nil {
			return nil, err
		}
	}
	return it, nil
}

// ends reports whether a key is at or beyond the upper bound.
func (it *Iterator) ends(key []byte) bool { return it.hi != nil && bytes.Compare(key, it.hi) >= 0 }
