package nemo

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"kvferry/internal/extsort"
)

// links maps the seqs of a list to what follows them.
type links struct {
	base int64  // seq of slot 0, when seqs is nil
	next pages  // by slot
	seqs *pages // by slot, ascending; nil: slots are seqs from base on
	hint int64  // slot found last
}

// spill fills l from rows sorted by seq, in files.
func (l *links) spill(s *extsort.Sorter, r *listReader) error {
	l.seqs = new(pages)
	for _, p := range []*pages{&l.next, l.seqs} {
		if err := p.open(r.env.TempDir, r.memory/8); err != nil {
			return err
		}
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
		if err == nil {
			err = errors.Join(l.seqs.push(seq), l.next.push(binary.LittleEndian.Uint64(next)))
		}
		if err != nil {
			return err
		}
	}
}

// find returns the slot of a seq. Neighbours in a list mostly are neighbours by seq.
func (l *links) find(seq int64) (int64, bool, error) {
	if l.seqs == nil {
		return seq - l.base, seq >= l.base && seq-l.base < int64(len(l.next.mem)), nil
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

func (l *links) close() error {
	err := l.next.close()
	if l.seqs != nil {
		err = errors.Join(err, l.seqs.close())
	}
	return err
}

const (
	pageWords = 512
	pageBytes = 8 * pageWords
	minPages  = 16
)

// pages is an array of numbers, in memory or in a file of which some pages are in memory. A page has one
// place it can be in, so nothing is searched.
type pages struct {
	mem []uint64 // all of it; nil: in the file

	len   int64
	file  *os.File
	cache []page
}

// page is a page in memory.
type page struct {
	no    int64 // -1: empty
	dirty bool
	data  []byte
}

// open starts an array in a file that is removed at once, with memory for pages.
func (p *pages) open(dir string, memory int64) error {
	f, err := os.CreateTemp(dir, "kvferry-links-*")
	if err != nil {
		return err
	}
	p.file = f
	p.cache = make([]page, max(minPages, memory/pageBytes))
	for i := range p.cache {
		p.cache[i].no = -1
	}
	return os.Remove(f.Name())
}

// push appends a number.
func (p *pages) push(v uint64) error {
	p.len++
	return p.set(p.len-1, v)
}

func (p *pages) get(i int64) (uint64, error) {
	if p.mem != nil {
		return p.mem[i], nil
	}
	pg, err := p.load(i / pageWords)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(pg.data[i%pageWords*8:]), nil
}

func (p *pages) set(i int64, v uint64) error {
	if p.mem != nil {
		p.mem[i] = v
		return nil
	}
	pg, err := p.load(i / pageWords)
	if err != nil {
		return err
	}
	pg.dirty = true
	binary.LittleEndian.PutUint64(pg.data[i%pageWords*8:], v)
	return nil
}

// load brings a page into memory, in place of the one that has its place. What the file does not reach to
// reads as zeros.
func (p *pages) load(no int64) (*page, error) {
	pg := &p.cache[no%int64(len(p.cache))]
	if pg.no == no {
		return pg, nil
	}
	if pg.data == nil {
		pg.data = make([]byte, pageBytes)
	}
	if pg.dirty {
		if _, err := p.file.WriteAt(pg.data, pg.no*pageBytes); err != nil {
			return nil, err
		}
	}
	n, err := p.file.ReadAt(pg.data, no*pageBytes)
	if err != nil && err != io.EOF {
		return nil, err
	}
	clear(pg.data[n:])
	pg.no, pg.dirty = no, false
	return pg, nil
}

func (p *pages) close() error {
	p.mem, p.cache = nil, nil
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return err
}
