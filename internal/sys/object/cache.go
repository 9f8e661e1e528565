package object

import (
	"container/list"
	"sync"
)

// Pieces of objects are read and kept whole. A jump costs one piece. For a reader that goes forward, each request is
// growth times as long as the last, up to maxRun, and the next run is requested when it reaches the first piece of the
// last one.
const (
	maxPiece   = 64 << 10
	minPiece   = 32 << 10
	usualHeld  = 128 // pieces: a merge of many tables reads from each
	leastHeld  = 8
	maxRunPart = 8 // a run takes at most one of so many parts of the cache
	maxRun     = 128
	growth     = 4
	// Behind the run that is read, so many runs are ahead at most, and one of so many parts of the cache: there are
	// several readers.
	deep     = 4
	deepPart = 4
	// A run is read by several requests of at most maxRequest bytes at the same time: one connection of an object store is
	// slower than the link. So are hints.
	maxRequest = 4 << 20
	maxHints   = 16
)

// cache holds pieces of the objects of a file system.
type cache struct {
	mu     sync.Mutex
	size   int64 // of a piece
	max    int   // pieces
	maxRun int
	held   int

	perRequest int           // pieces
	hints      chan struct{} // has an element for each request of hinted pieces that is under way
	asked      int           // pieces requested so far
	pieces     map[place]*piece
	idle       list.List // complete pieces without a reader, the least useful first
	free       [][]byte
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
	used    int           // asked when it became idle
	run     int           // pieces of the request that read it
	next    int64         // if not 0, the piece is the first of a run ahead, and this is the piece after that run
}

func newCache(memory int64) *cache {
	size := int64(maxPiece)
	for size > minPiece && memory/size < usualHeld {
		size /= 2
	}
	n := max(leastHeld, int(memory/size))
	return &cache{size: size, max: n, maxRun: min(maxRun, max(1, n/maxRunPart)), pieces: map[place]*piece{},
		perRequest: int(maxRequest / size), hints: make(chan struct{}, maxHints)}
}

// takePiece returns a piece, complete; the caller must release it. It returns nil for a piece that is kept on disk. want is
// the number of pieces that the caller is going to take from there on.
func (c *cache) takePiece(h *handle, n int64, want int) (*piece, error) {
	c.mu.Lock()
	p, run := c.pieces[place{h.o, n}], want
	if p == nil && h.o.kept.Load().has(n) {
		c.mu.Unlock()
		return nil, nil
	}
	if p == nil {
		if before := c.pieces[place{h.o, n - 1}]; before != nil && !h.sparse {
			run = max(want, growth*before.run)
		}
		p = c.request(h, n, run, needed)
	}
	if p.elem != nil {
		c.idle.Remove(p.elem)
		p.elem = nil
	}
	p.readers++
	if p.next > 0 && !h.sparse {
		c.forward(h, p)
	}
	c.mu.Unlock()
	<-p.done
	if p.err != nil {
		c.release(p, true)
		return nil, p.err
	}
	return p, nil
}

// forward requests more pieces ahead of a reader, who has reached p. With runs of full length it keeps several runs
// ahead, and marks the piece where it goes on. c.mu is held.
func (c *cache) forward(h *handle, p *piece) {
	q := c.request(h, p.next, growth*p.run, ahead)
	p.next = 0
	if q == nil || q.run < c.maxRun {
		return
	}
	run, end := int64(c.maxRun), q.next
	for end-p.n-run < min(deep*run, int64(c.max/deepPart)) {
		r := c.request(h, end, c.maxRun, ahead)
		if r == nil {
			break
		}
		end, r.next = r.next, 0
	}
	q.next = 0
	if m := c.pieces[place{h.o, p.n + run}]; m != nil {
		q = m
	}
	q.next = end
}

// why is the reason of a request.
type why int

const (
	needed why = iota // a reader waits for the first piece
	ahead             // a reader goes forward
	hinted            // a reader is going to jump there
)

// request requests up to run pieces from n on, fewer if the cache is full. It skips pieces that the cache has. It returns
// the first requested piece; there is always room for a needed one. c.mu is held.
func (c *cache) request(h *handle, n int64, run int, of why) *piece {
	var got []*piece
	run = min(run, c.maxRun)
	end := n
	for ; end < n+int64(run) && end*c.size < h.o.size; end++ {
		at := place{h.o, end}
		first := of == needed && end == n
		if p := c.pieces[at]; p != nil || !first && h.o.kept.Load().has(end) {
			if p != nil && of == ahead {
				p.run = max(p.run, run)
			}
			continue
		}
		if !c.room(first) {
			break
		}
		p := &piece{place: at, buf: c.buffer(min(c.size, h.o.size-end*c.size)), done: make(chan struct{}), run: run}
		c.pieces[at] = p
		c.asked++
		got = append(got, p)
	}
	if len(got) == 0 {
		return nil
	}
	if of == hinted || h.sparse {
		for _, p := range got {
			p.run = 1
		}
	} else if of == ahead || run > 1 { // else a jump, or the first read
		trigger := got[0]
		if of == needed {
			trigger = got[min(1, len(got)-1)]
		}
		trigger.next = end
	}
	for from := 0; from < len(got); {
		to := from + 1
		for to < len(got) && got[to].n == got[to-1].n+1 && to-from < c.perRequest {
			to++
		}
		go c.fetch(h, got[from:to:to], of)
		from = to
	}
	return got[0]
}

// room makes room for one more piece, and reports whether there is. A needed piece always has room: there are as many
// as readers. One ahead takes the place of a piece that was read to its end, or that no reader came back to while the
// whole cache was requested anew: else such pieces would fill the cache and end all reading ahead. c.mu is held.
func (c *cache) room(needed bool) bool {
	if c.held < c.max {
		c.held++
		return true
	}
	e := c.idle.Front()
	if e != nil && (needed || e.Value.(*piece).read || c.asked-e.Value.(*piece).used >= c.max) {
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
	p.used = c.asked
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

// fetch reads pieces that follow each other by one request. Hinted ones wait for their turn.
func (c *cache) fetch(h *handle, run []*piece, of why) {
	if of == hinted {
		c.hints <- struct{}{}
		defer func() { <-c.hints }()
	}
	last := run[len(run)-1]
	r := &body{h: h, off: run[0].n * c.size, end: last.n*c.size + int64(len(last.buf))}
	defer r.close()
	var err error
	for _, p := range run {
		if err == nil {
			if err = r.fill(p.buf); err == nil {
				h.o.kept.Load().put(p.n, p.buf)
			}
		}
		c.finish(p, err)
	}
}

// finish completes a piece. A failed piece is forgotten: its readers get the error, and a later reader requests it
// again.
func (c *cache) finish(p *piece, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.err = err
	if err != nil {
		delete(c.pieces, p.place)
	}
	close(p.done)
	c.rest(p)
}
