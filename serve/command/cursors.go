package command

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/zeebo/xxh3"
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
	places map[uint64]place
	ring   [maxCursors]uint64
	at     int
	parked []parked // the oldest first
}

// place is what a cursor stands for: a scan goes on after the key.
type place struct {
	db  int
	key string
}

// parked is a pass at the position of a cursor.
type parked struct {
	cursor uint64
	pass   *gatedScanner
}

// cursorOf derives a cursor from its place, so that it means the same in every run of the server.
func cursorOf(p place) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(p.db))
	return max(xxh3.HashStringSeed(p.key, binary.LittleEndian.Uint64(b[:])+1)&(1<<53-1), 1)
}

// put returns the cursor of a place.
func (c *cursors) put(p place) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := cursorOf(p)
	for {
		if there, ok := c.places[id]; !ok || there == p {
			break
		}
		id = id%(1<<53-1) + 1 // taken by another place
	}
	if _, ok := c.places[id]; ok {
		return id
	}
	if c.places == nil {
		c.places = map[uint64]place{}
	}
	delete(c.places, c.ring[c.at])
	c.ring[c.at] = id
	c.at = (c.at + 1) % maxCursors
	c.places[id] = p
	return id
}

// get returns the place of a cursor.
func (c *cursors) get(id uint64) (place, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.places[id]
	return p, ok
}

// park keeps a pass for the next call with the cursor. It closes the oldest pass if there are too many.
func (c *cursors) park(id uint64, pass *gatedScanner) (err error) {
	c.mu.Lock()
	c.parked = append(c.parked, parked{id, pass})
	var old *gatedScanner
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

// take returns the pass that stands at a cursor; nil if there is none.
func (c *cursors) take(id uint64) *gatedScanner {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range c.parked {
		if p.cursor == id {
			c.parked = append(c.parked[:i], c.parked[i+1:]...)
			return p.pass
		}
	}
	return nil
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
