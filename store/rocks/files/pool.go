package files

import (
	"container/list"
	"sync"

	"kvferry/internal/sys/disk"
)

// Pool limits the number of files that its sets have open together: the least recently read file is closed first.
type Pool struct {
	mu   sync.Mutex
	max  int
	open int
	idle list.List // of *File that are open and not being read, longest idle first
}

// NewPool returns a pool of at most max files.
func NewPool(max int) *Pool { return &Pool{max: max} }

// process is the pool of all sets without their own.
var process = NewPool(share(disk.MaxOpen()))

// mostOpen caps the files of a pool if the process limit is high.
const mostOpen = 4096

// share is the number of files, out of the process limit, for reading tables. The rest is for written tables, temporary
// files, standard streams and sockets.
func share(limit int) int { return min(max(limit/2, 8), mostOpen) }

// makeRoom closes idle files until one more may be opened. The caller holds p.mu.
func (p *Pool) makeRoom() {
	for p.open >= p.max && p.closeIdle() {
	}
}

// closeIdle closes the least recently read idle file, if any.
func (p *Pool) closeIdle() bool {
	e := p.idle.Front()
	if e == nil {
		return false
	}
	f := p.idle.Remove(e).(*File)
	f.elem = nil
	f.closeNow()
	return true
}

// openFile opens a file. If the process is out of descriptors, it closes idle files first. The caller holds p.mu.
func (p *Pool) openFile(of *disk.Sources, path string) (*disk.File, error) {
	p.makeRoom()
	f, err := of.Open(path)
	for disk.IsExhausted(err) && p.closeIdle() {
		f, err = of.Open(path)
	}
	return f, err
}
