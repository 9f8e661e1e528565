// Package extsort sorts rows with bounded memory. Rows are collected in memory. Beyond the memory limit they are
// sorted and spilled to a temporary file as a run, and the runs are merged when they are read.
//
// Rows are sorted by (prefix, key); equal rows keep their order. Callers should encode as much of their order as
// possible in the prefix, because numbers are fast to compare.
//
// Duplicates finds equal hashes within bounded memory.
package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"kvferry/internal/sys/disk"
)

const (
	defaultMemory = 16 << 20
	minMemory     = 8 << 10
	itemSize      = 32 // bytes of an item

	minChunk = 1 << 10
	maxChunk = 1 << 20
	minIndex = 32
)

// errSorted means that a row was added after Sort.
var errSorted = errors.New("extsort: row added after Sort; call Reset first")

// Options control the sorting.
type Options struct {
	// Compare orders keys within a prefix; nil means bytes.Compare, which is faster.
	Compare func(a, b []byte) int
	// Memory is the memory limit in bytes, including index and buffers; 0 means 16 MiB. A larger row is held anyway.
	Memory int64
	// TempDir takes spilled rows; "" means os.TempDir.
	TempDir string
	// Points makes Range fast for a few rows: spilled rows end in one run of small frames, with an index of all of them.
	Points bool
}

// Sorter sorts rows. It is used by one goroutine.
type Sorter struct {
	compare func(a, b []byte) int
	memory  int
	tempDir string
	points  bool

	items  []item
	chunks [][]byte // keys and values; chunks after cur are empty
	cur    int
	arena  int // bytes of all chunks
	total  int

	ordered bool // items are in order so far
	heads   bool // the heads alone are compared
	reading bool
	err     error

	spilled *spool
	runs    []run
	files   []*disk.File // open files of loaded runs
	frame   []byte       // frame being written
	it      Iterator
}

// item is a row in memory. Its key is at off in the chunk, followed by the value. head holds the first bytes of the
// key as a number, so that most comparisons do not read the chunk.
type item struct {
	prefix, head uint64
	chunk, off   uint32
	klen, vlen   uint32
}

// New returns a Sorter. It allocates no memory before the first row.
func New(o Options) *Sorter {
	s := &Sorter{compare: o.Compare, tempDir: o.TempDir, points: o.Points, ordered: true}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	s.memory = int(min(max(o.Memory, minMemory), math.MaxInt64/2))
	return s
}

// Len returns the number of rows added since New or Reset.
func (s *Sorter) Len() int { return s.total }

// Add adds a row; key and value are copied.
func (s *Sorter) Add(prefix uint64, key, value []byte) error {
	n := len(key) + len(value)
	if len(s.items) == cap(s.items) || s.cur >= len(s.chunks) || n > cap(s.chunks[s.cur])-len(s.chunks[s.cur]) {
		if err := s.makeRoom(len(key), len(value)); err != nil {
			return err
		}
	}
	if s.reading {
		return errSorted
	}
	c := s.chunks[s.cur]
	it := item{prefix: prefix, head: s.headOf(key), chunk: uint32(s.cur), off: uint32(len(c)),
		klen: uint32(len(key)), vlen: uint32(len(value))}
	s.chunks[s.cur] = append(append(c, key...), value...)
	s.items = append(s.items, it)
	s.total++
	if n := len(s.items); s.ordered && n > 1 && s.less(&s.items[n-1], &s.items[n-2]) {
		s.ordered = false
	}
	return nil
}

// Room adds a row with a value of n bytes and returns the buffer for the value. The buffer is valid until the next
// row is added or rows are read. This saves copying large values.
func (s *Sorter) Room(prefix uint64, key []byte, n int) ([]byte, error) {
	if err := s.makeRoom(len(key), n); err != nil {
		return nil, err
	}
	if err := s.Add(prefix, key, nil); err != nil {
		return nil, err
	}
	c := s.chunks[s.cur]
	from := len(c)
	c = c[:from+n]
	s.chunks[s.cur] = c
	s.items[len(s.items)-1].vlen = uint32(n)
	return c[from:len(c):len(c)], nil
}

// AddParts adds a row whose value is the concatenation of parts.
func (s *Sorter) AddParts(prefix uint64, key []byte, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	room, err := s.Room(prefix, key, n)
	if err != nil {
		return err
	}
	for _, p := range parts {
		room = room[copy(room, p):]
	}
	return nil
}

// Sort ends adding and returns the rows in order. The iterator is valid until Reset or Close.
func (s *Sorter) Sort() (*Iterator, error) {
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	s.it = Iterator{s: s, heap: s.it.heap[:0]}
	if len(s.runs) == 0 {
		return &s.it, nil
	}
	if err := s.it.open(s.runs); err != nil {
		s.err = err
		return nil, err
	}
	return &s.it, nil
}

// Prepare ends adding, so that Range can be called.
func (s *Sorter) Prepare() error {
	if s.err != nil {
		return s.err
	}
	s.reading = true
	if len(s.runs) == 0 {
		s.sortItems()
	} else {
		s.err = s.merge()
	}
	return s.err
}

// Each sorts the rows and calls f with each. The views are valid until f returns.
func (s *Sorter) Each(f func(prefix uint64, key, value []byte) error) error {
	it, err := s.Sort()
	if err != nil {
		return err
	}
	for {
		prefix, key, value, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f(prefix, key, value)
		}
		if err != nil {
			return err
		}
	}
}

// Reset removes all rows and keeps the memory for new ones.
func (s *Sorter) Reset() {
	s.drop()
	s.total, s.reading, s.err = 0, false, nil
	s.runs = s.runs[:0]
	s.it.heap = s.it.heap[:0]
	s.err = s.closeFiles()
	if s.spilled != nil {
		s.err = errors.Join(s.err, s.spilled.f.Close())
		s.spilled = nil
	}
}

// Close removes all rows and frees files and memory.
func (s *Sorter) Close() error {
	s.Reset()
	err := s.err
	*s = Sorter{compare: s.compare, memory: s.memory, tempDir: s.tempDir, points: s.points, ordered: true}
	return err
}

// drop empties the memory. It frees chunks that were made for a single large row.
func (s *Sorter) drop() {
	kept := s.chunks[:0]
	for _, c := range s.chunks {
		if cap(c) <= maxChunk {
			kept = append(kept, c[:0])
		} else {
			s.arena -= cap(c)
		}
	}
	clear(s.chunks[len(kept):])
	s.chunks, s.items = kept, s.items[:0]
	s.cur, s.ordered = 0, true
}

// budget returns the memory limit of index and chunks together.
func (s *Sorter) budget() int { return s.memory - s.frameSize() }

// makeRoom makes room for one more row. It spills the rows in memory if the budget is exhausted.
func (s *Sorter) makeRoom(klen, vlen int) error {
	if s.err != nil {
		return s.err
	}
	if s.reading {
		return errSorted
	}
	if klen > math.MaxUint32 || vlen > math.MaxUint32 {
		return fmt.Errorf("extsort: row of %d + %d bytes: the limit is 4 GiB", klen, vlen)
	}
	if s.growIndex() && s.growArena(klen+vlen) {
		return nil
	}
	if err := s.spill(); err != nil {
		s.err = err
		return err
	}
	s.rebalance()
	s.growIndex()
	s.growArena(klen + vlen)
	return nil
}

// growIndex makes room for one item. It returns false if that exceeds the budget and rows can be spilled.
func (s *Sorter) growIndex() bool {
	n := cap(s.items)
	if len(s.items) < n {
		return true
	}
	more := max(minIndex, n*2)
	if n > 0 && (n+more)*itemSize+s.arena > s.budget() {
		return false
	}
	s.items = append(make([]item, 0, more), s.items...)
	return true
}

// growArena makes room for n bytes in the current chunk, under the same condition.
func (s *Sorter) growArena(n int) bool {
	for ; s.cur < len(s.chunks); s.cur++ {
		if c := s.chunks[s.cur]; n <= cap(c)-len(c) {
			return true
		}
	}
	size := min(max(minChunk, s.arena), maxChunk, max(minChunk, s.memory/16))
	size = max(size, n)
	if s.arena+size+cap(s.items)*itemSize > s.budget() {
		if len(s.items) > 0 {
			return false
		}
		clear(s.chunks) // empty ones, too small for the row
		s.chunks, s.arena = s.chunks[:0], 0
	}
	s.chunks = append(s.chunks, make([]byte, 0, size))
	s.cur = len(s.chunks) - 1
	s.arena += size
	return true
}

// rebalance divides the budget between index and chunks by the average row size of the first run, so that later runs
// use all of it.
func (s *Sorter) rebalance() {
	if len(s.runs) != 1 {
		return
	}
	r := &s.runs[0]
	each := max(1, int((r.end-r.off)/int64(max(1, r.items)))-rowHeader)
	want := s.budget() / (itemSize + each) * 15 / 16
	if want < cap(s.items)*5/4 && want > cap(s.items)*3/4 || want < minIndex {
		return
	}
	s.items = nil
	for len(s.chunks) > 0 && s.arena+want*itemSize > s.budget() {
		last := len(s.chunks) - 1
		s.arena -= cap(s.chunks[last])
		s.chunks[last] = nil
		s.chunks = s.chunks[:last]
	}
	s.items = make([]item, 0, want)
}

// compareRows compares keys by their heads first. Heads are padded with zeros: if two keys of at most 8 bytes have
// equal heads, the longer key has trailing zeros.
func (s *Sorter) compareRows(ahead uint64, a []byte, bhead uint64, b []byte) int {
	switch {
	case s.compare != nil:
		return s.compare(a, b)
	case ahead < bhead:
		return -1
	case ahead > bhead:
		return 1
	case len(a) <= 8 && len(b) <= 8:
		return len(a) - len(b)
	}
	return bytes.Compare(a, b)
}

func (s *Sorter) headOf(key []byte) uint64 {
	if s.compare != nil {
		return 0
	}
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var h uint64
	for _, c := range key {
		h = h<<8 | uint64(c)
	}
	return h << (8 * (8 - len(key)))
}

func (s *Sorter) key(it item) []byte {
	return s.chunks[it.chunk][it.off : it.off+it.klen : it.off+it.klen]
}

func (s *Sorter) value(it item) []byte {
	from := it.off + it.klen
	return s.chunks[it.chunk][from : from+it.vlen : from+it.vlen]
}
