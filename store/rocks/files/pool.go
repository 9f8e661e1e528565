package files

import (
	"container/list"
	"sync"

	"kvferry/internal/sys/disk"
)

// Pool bounds how many files its sets have open together: the one that was not read the longest makes room.
type Pool struct {
	mu   sync.Mutex
	max  int
	open int
	idle list.List // of *File that are open and not being read, longest idle first
}

// NewPool makes a pool of at most max files.
func NewPool(max int) *Pool { return &Pool{max: max} }

// process is what the sets of a process share that have no pool of their own.
var process = NewPool(share(disk.MaxOpen()))

// mostOpen bounds the files of a pool where the limit of the process is generous.
const mostOpen = 4096

// share is how many of the files that the process may have open are for reading tables. The others are for tables that
// are written, temporary files, standard streams and sockets.
func share(limit int) int { return min(max(limit/2, 8), mostOpen) }

// makeRoom closes idle files until one more may be opened. p.mu is held.
func (p *Pool) makeRoom() {
	for p.open >= p.max && p.closeIdle() {
	}
}

// closeIdle closes the file that was not read the longest, if one is idle.
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

// openFile opens a file. Where others have taken the descriptors, idle files give theirs back first. p.mu is held.
func (p *Pool) openFile(of *disk.Sources, path string) (*disk.File, error) {
	p.makeRoom()
	f, err := of.Open(path)
	for disk.IsExhausted(err) && p.closeIdle() {
		f, err = of.Open(path)
	}
	return f, err
}
