package listorder

import (
	"encoding/binary"
	"io"

	"kvferry/internal/sys/disk"
)

const (
	pageWords = 128 // small, for lists whose links go anywhere
	pageBytes = 8 * pageWords
	minPages  = 16
)

// pages is an array of numbers in a file with a direct-mapped cache: a page has a single place in memory, so
// lookups need no search.
type pages struct {
	len   int64
	file  *disk.File
	cache []page
}

// page is a page in memory.
type page struct {
	no    int64 // -1: empty
	dirty bool
	data  []byte
}

// open starts an array in a temporary file, with memory for pages.
func (p *pages) open(dir string, memory int64) error {
	f, err := disk.Temp(dir, "links")
	if err != nil {
		return err
	}
	p.file = f
	p.cache = make([]page, max(minPages, memory/pageBytes))
	for i := range p.cache {
		p.cache[i].no = -1
	}
	return nil
}

// push appends a number.
func (p *pages) push(v uint64) error {
	p.len++
	return p.set(p.len-1, v)
}

func (p *pages) get(i int64) (uint64, error) {
	pg, err := p.load(i / pageWords)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(pg.data[i%pageWords*8:]), nil
}

func (p *pages) set(i int64, v uint64) error {
	pg, err := p.load(i / pageWords)
	if err != nil {
		return err
	}
	pg.dirty = true
	binary.LittleEndian.PutUint64(pg.data[i%pageWords*8:], v)
	return nil
}

// load reads a page into its place in memory and writes back the page it replaces, if dirty. Bytes past the
// end of the file read as zeros.
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
	p.cache = nil
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return err
}
