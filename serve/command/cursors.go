package command

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"kvferry/record"
)

const (
	// maxCursors is the number of positions that are kept, the latest ones.
	maxCursors = 1 << 16
	// maxParked is the number of passes that wait for the next call of a scan.
	maxParked = 16
)

// cursors are positions of scans. A position is a key, or an element of a key: it outlives the pass that led to it,
// and any number of scans may share it.
type cursors struct {
	mu     sync.Mutex
	places recent[uint64, place]
	parked []parked // the oldest first
}

// place is the position of a scan: of keys, after a key and its record of type n; of a value, after n elements.
type place struct {
	db  int
	key string
	typ record.Type // of the value; 0: a scan of keys
	n   uint64
}

// parked is a pass at a place.
type parked struct {
	place
	pass pass
}

// pass is a pass over keys or elements that a later call can take over.
type pass interface {
	park(context.Context)
	resume(context.Context, *Client) error
	Close() error
}

// cursorOf derives a cursor from its place, so that it means the same in every run of the server.
func cursorOf(p place) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(p.db)|p.n<<32)
	return max(xxh3.HashStringSeed(p.key, binary.LittleEndian.Uint64(b[:])+1)&(1<<53-1), 1)
}

// put returns the cursor of a place.
func (c *cursors) put(p place) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := cursorOf(p)
	for there, ok := c.places.get(id); ok && there != p; there, ok = c.places.get(id) {
		id = id%(1<<53-1) + 1 // taken by another place
	}
	c.places.put(id, p, maxCursors)
	return id
}

// park keeps a pass for the next call at a place. It closes the oldest pass if there are too many.
func (s *Server) park(at place, p pass) (err error) {
	p.park(s.ctx())
	c := &s.cursors
	c.mu.Lock()
	c.parked = append(c.parked, parked{at, p})
	var old pass
	if len(c.parked) > maxParked {
		old = c.parked[0].pass
		c.parked = append(c.parked[:0], c.parked[1:]...)
	}
	c.mu.Unlock()
	if old != nil {
		err = old.Close()
	}
	return err
}

// resume returns the pass parked at a place, or nil.
func (c *Call) resume(at place) (pass, error) {
	p := c.Server.cursors.parkedAt(at)
	if p == nil {
		return nil, nil
	}
	if err := p.resume(c.Ctx, c.Client); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// parkedAt takes the pass parked at a place.
func (c *cursors) parkedAt(at place) pass {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.parked, func(p parked) bool { return p.place == at })
	if i < 0 {
		return nil
	}
	p := c.parked[i].pass
	c.parked = slices.Delete(c.parked, i, i+1)
	return p
}

// close ends all passes.
func (c *cursors) close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parked {
		err = errors.Join(err, p.pass.Close())
	}
	c.parked = nil
	return err
}

// Close ends what commands left for later ones. No command may run.
func (s *Server) Close() error { return s.cursors.close() }

// recent holds the values of the keys that were put last.
type recent[K comparable, V any] struct {
	mu   sync.Mutex
	of   map[K]V
	ring []K
	at   int
}

const (
	// maxRecent is the number of places for which lengths and marks are kept.
	maxRecent = 4096
	// longName is the length from which names are not kept.
	longName = 1024
)

func (r *recent[K, V]) get(key K) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok = r.of[key]
	return v, ok
}

// put keeps a value. Of more than limit keys it forgets the oldest.
func (r *recent[K, V]) put(key K, v V, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[K]V{}
	}
	if _, ok := r.of[key]; !ok && len(r.ring) < limit {
		r.ring = append(r.ring, key)
	} else if !ok {
		delete(r.of, r.ring[r.at])
		r.ring[r.at] = key
		r.at = (r.at + 1) % limit
	}
	r.of[key] = v
}
