package extsort

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"kvferry/store"
)

// Iterator walks sorted rows.
type Iterator struct {
	s    *Sorter
	next int       // index of the next row in memory
	heap []*cursor // cursors of the runs, smallest row first; empty without runs
	move bool      // the first cursor's row was returned
	hi   []byte    // exclusive upper bound; nil: none
	span int       // of its cursors
}

// Next returns the next row, io.EOF after the last. key and value are views until the next call.
func (it *Iterator) Next() (prefix uint64, key, value []byte, err error) {
	if len(it.s.runs) > 0 {
		return it.nextMerged()
	}
	if it.next >= len(it.s.items) {
		return 0, nil, nil, io.EOF
	}
	i := it.s.items[it.next]
	if it.ends(it.s.key(i)) {
		return 0, nil, nil, io.EOF
	}
	it.next++
	return i.prefix, it.s.key(i), it.s.value(i), nil
}

// NextBatch fills rows with up to len(rows) rows that are in memory and returns their number, at least one; io.EOF
// after the last. The views are valid until the next call. It does not return prefixes.
func (it *Iterator) NextBatch(rows []store.Row) (int, error) {
	s := it.s
	if len(s.runs) > 0 || it.hi != nil {
		rows[0] = store.Row{} // it may hold the last reference to a large row
		_, key, value, err := it.Next()
		if err != nil {
			return 0, err
		}
		rows[0] = store.Row{Key: key, Value: value}
		return 1, nil
	}
	items := s.items[it.next:]
	n := min(len(items), len(rows))
	if n == 0 {
		return 0, io.EOF
	}
	for i := range items[:n] {
		x, r := &items[i], &rows[i] // set field by field: a struct would be built elsewhere and copied
		c := s.chunks[x.chunk][x.off:]
		end := x.klen + x.vlen
		r.Key, r.Value = c[:x.klen:x.klen], c[x.klen:end:end]
	}
	it.next += n
	return n, nil
}

func (it *Iterator) nextMerged() (prefix uint64, key, value []byte, err error) {
	if it.move {
		if err := it.advance(); err != nil {
			return 0, nil, nil, err
		}
	}
	if len(it.heap) == 0 {
		return 0, nil, nil, io.EOF
	}
	c := it.heap[0]
	if it.ends(c.key) {
		return 0, nil, nil, io.EOF
	}
	it.move = true
	return c.prefix, c.key, c.value, nil
}

// advance moves the first cursor on and sinks it to its place.
func (it *Iterator) advance() error {
	it.move = false
	c := it.heap[0]
	switch err := c.next(); {
	case err == io.EOF:
		last := len(it.heap) - 1
		it.heap[0] = it.heap[last]
		it.heap[last] = nil
		it.heap = it.heap[:last]
	case err != nil:
		return err
	}
	it.sink()
	return nil
}

func (it *Iterator) sink() {
	h, i := it.heap, 0
	for {
		least := i
		for j := 2*i + 1; j <= 2*i+2 && j < len(h); j++ {
			if compareCursors(h[j], h[least]) < 0 {
				least = j
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func compareCursors(a, b *cursor) int {
	if a.prefix != b.prefix {
		if a.prefix < b.prefix {
			return -1
		}
		return 1
	}
	if c := a.s.compareRows(a.head, a.key, b.head, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.rank, b.rank)
}

// merge merges runs until all of them can be open at once. It frees the memory of the rows for read buffers.
func (s *Sorter) merge() error {
	if len(s.items) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.items, s.chunks, s.arena = nil, nil, 0
	for s.fan(s.runs) < len(s.runs) || s.points && len(s.runs) > 1 {
		if err := s.pass(); err != nil {
			return err
		}
	}
	return nil
}

// pass merges adjacent runs into a new spool, as many at a time as can be open.
func (s *Sorter) pass() error {
	to, err := s.newSpool()
	if err != nil {
		return err
	}
	var merged []run
	for rest := s.runs; len(rest) > 0; {
		n := s.fan(rest)
		r, err := s.mergeInto(to, rest[:n])
		if err != nil {
			to.f.Close()
			return err
		}
		merged, rest = append(merged, r), rest[n:]
	}
	old := s.spilled
	s.spilled, s.runs = to, merged
	if old == nil { // all runs were loaded
		return nil
	}
	return old.f.Close()
}

func (s *Sorter) mergeInto(to *spool, runs []run) (run, error) {
	it := Iterator{s: s}
	if s.points {
		it.span = pointSpan
	}
	if err := it.open(runs); err != nil {
		return run{}, err
	}
	r, err := it.write(to)
	return r, errors.Join(err, s.closeFiles())
}

// open puts a cursor at the start of each run.
func (it *Iterator) open(runs []run) error {
	it.heap, it.move = make([]*cursor, 0, len(runs)), false
	for rank, r := range runs {
		from, err := it.s.source(&r)
		if err != nil {
			return err
		}
		c := &cursor{s: it.s, from: from, off: r.off, end: r.end, rank: rank, span: it.span}
		if err := c.next(); err != nil {
			return err
		}
		it.heap = append(it.heap, c)
	}
	slices.SortFunc(it.heap, compareCursors) // a sorted slice is a heap
	return nil
}
