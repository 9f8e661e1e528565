package files

import (
	"slices"
	"sort"
	"sync"
)

// lost records the parts of a file that the medium could not read.
type lost struct {
	mu    sync.Mutex
	spans []span // disjoint, ascending
}

type span struct {
	off, end int64
	err      error
}

// at returns the first span that ends after off.
func (l *lost) at(off int64) int {
	return sort.Search(len(l.spans), func(i int) bool { return l.spans[i].end > off })
}

// add records n bytes at off.
func (l *lost) add(off int64, n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := off + int64(n)
	from := l.at(off)
	to := from
	for to < len(l.spans) && l.spans[to].off < end {
		off, end = min(off, l.spans[to].off), max(end, l.spans[to].end)
		to++
	}
	l.spans = slices.Replace(l.spans, from, to, span{off, end, err})
}

// in returns the error of a span that overlaps the n bytes at off, or nil.
func (l *lost) in(off int64, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.at(off); i < len(l.spans) && l.spans[i].off < off+int64(n) {
		return l.spans[i].err
	}
	return nil
}
