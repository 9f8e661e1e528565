package object

import (
	"container/list"
	"sync"
)

// Pieces of objects are read and kept whole. A jump costs one piece. A reader that goes forward doubles the number of
// pieces of a request up to maxRun, and the next run is requested when it reaches the first piece of the last one.
const (
	maxPiece   = 256 << 10
	minPiece   = 32 << 10
	usualHeld  = 128 // pieces: a merge of many tables reads from each
	leastHeld  = 8
	maxRunPart = 8 // a run takes at most one of so many parts of the cache
	maxRun     = 32
)

// cache holds pieces of the objects of a file system.
type cache struct {
	mu     sync.Mutex
	size   int64 // of a piece
	max    int   // pieces
	maxRun int
	held   int
	pieces map[place]*piece
	idle   list.List // complete pieces without a reader, the least useful first
	free   [][]byte
}

// place is a piece of an object: an open file finds what another one of the same version has read.
type place struct {
	o *object
	n int64
}

// piece is a piece of an object that is held or requested. All but buf and err are guarded by the cache's mutex; buf and
// err may be read when done is closed.
type piece struct {
	place
	buf     []byte
	err     error
	done    chan struct{}
	readers int
	elem    *list.Element // in idle
	read    bool          // to the end: it is not needed again, most likely
	run     int           // pieces of the request that read it
	next    int64         // if not 0, the piece is the first of a run ahead, and this is the piece after that run
}

func newCache(memory int64) *cache {
	size := int64(maxPiece)
	for size > minPiece && memory/size < usualHeld {
		size /= 2
	}
	n := max(leastHeld, int(memory/size))
	return &cache{size: size, max: n, maxRun: min(maxRun, max(1, n/maxRunPart)), pieces: map[place]*piece{}}
}

// take returns a piece, complete; the caller must release it. want is the number of pieces that the caller is going to
// take from there on.
func (c *cache) take(h *handle, n int64, want int) (*piece, error) {
	c.mu.Lock()
	p := c.pieces[place{h.o, n}]
	if p == nil {
		run := want
		if before := c.pieces[place{h.o, n - 1}]; before != nil {
			run = max(want, 2*before.run)
		}
		p = c.request(h, n, run, true)
	}
	if p.elem != nil {
		c.idle.Remove(p.elem)
		p.elem = nil
	}
	p.readers++
	if p.next > 0 {
		c.request(h, p.next, 2*p.run, false)
		p.next = 0
	}
	c.mu.Unlock()
	<-p.done
	if p.err != nil {
		c.release(p, true)
		return nil, p.err
	}
	return p, nil
}

// request requests up to run pieces from n on, fewer if the next is held or does not fit. It returns the first piece,
// which always fits if it is needed. c.mu is held.
func (c *cache) request(h *handle, n int64, run int, needed bool) *piece {
	var got []*piece
	run = min(run, c.maxRun)
	for i := n; len(got) < run && i*c.size < h.o.size; i++ {
		at := place{h.o, i}
		if c.pieces[at] != nil || !c.room(needed && i == n) {
			break
		}
		p := &piece{place: at, buf: c.buffer(min(c.size, h.o.size-i*c.size)), done: make(chan struct{}), run: run}
		c.pieces[at] = p
		got = append(got, p)
	}
	if len(got) == 0 {
		return nil
	}
	ahead := got[0]
	if needed {
		ahead = got[min(1, len(got)-1)]
	}
	ahead.next = n + int64(len(got))
	if needed && run == 1 {
		ahead.next = 0 // a jump, or the first read
	}
	go c.fetch(h, got)
	return got[0]
}

// room makes room for one more piece, and reports whether there is. A needed piece always has room: there are as many
// as readers. c.mu is held.
func (c *cache) room(needed bool) bool {
	if c.held < c.max {
		c.held++
		return true
	}
	e := c.idle.Front()
	if e != nil && (needed || e.Value.(*piece).read) {
		c.drop(c.idle.Remove(e).(*piece))
		c.held++
		return true
	}
	if needed {
		c.held++
	}
	return needed
}

// drop forgets a piece without a reader. c.mu is held.
func (c *cache) drop(p *piece) {
	if c.pieces[p.place] == p {
		delete(c.pieces, p.place)
	}
	c.held--
	if c.held < c.max && int64(cap(p.buf)) == c.size {
		c.free = append(c.free, p.buf)
	}
	p.buf = nil
}

// buffer returns n bytes. c.mu is held.
func (c *cache) buffer(n int64) []byte {
	if last := len(c.free) - 1; last >= 0 && n == c.size {
		b := c.free[last]
		c.free = c.free[:last]
		return b
	}
	return make([]byte, n)
}

// release ends a use of a piece. read is true if the caller read its last byte.
func (c *cache) release(p *piece, read bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.readers--
	p.read = p.read || read
	c.rest(p)
}

// rest makes a piece without a reader idle. c.mu is held.
func (c *cache) rest(p *piece) {
	switch {
	case p.readers > 0:
	case p.err != nil || c.held > c.max:
		c.drop(p)
	case p.read:
		p.elem = c.idle.PushFront(p)
	default:
		p.elem = c.idle.PushBack(p)
	}
}

// fetch reads pieces that follow each other by one request.
func (c *cache) fetch(h *handle, run []*piece) {
	last := run[len(run)-1]
	r := &body{h: h, off: run[0].n * c.size, end: last.n*c.size + int64(len(last.buf))}
	defer r.close()
	var err error
	for _, p := range run {
		if err == nil {
			err = r.fill(p.buf)
		}
		c.finish(p, err)
	}
}

// finish completes a piece. A failed piece is forgotten: its readers get the error, and a later reader requests it
// again.
func (c *cache) finish(p *piece, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.err = err; err != nil {
		delete(c.pieces, p.place)
	}
	close(p.done)
	c.rest(p)
}
