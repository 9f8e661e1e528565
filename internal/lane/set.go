package lane

import (
	"bytes"
	"errors"
	"io"

	"kvferry/record"
	"kvferry/store"
)

// MaxOpen is how many lanes of a set are open at once unless the directory says otherwise. Past it the
// one that was not asked for longest is closed. A chunk of its rows is read first, so that it need not
// be opened again before those are used up: however many lanes take turns, opening one is paid by the
// rows of a chunk, not by each.
const MaxOpen = 64

// Set walks all lanes of a keyspace within a span of user keys. Every row of the span is handed out
// exactly once, by Next or to Stray, when Finish was called. It is used by one goroutine.
type Set struct {
	dir     *Directory
	first   bool
	stray   Stray
	maxOpen int
	chunk   int // bytes of rows that a closed lane keeps

	cursors []cursor // one for each lane of the directory
	open    []*cursor
	tick    int64

	cur   *cursor // lane of the current key, nil when it has none
	want  []byte  // prefix and current key
	tally record.Tally
}

// cursor walks one lane. Its row is a view into its iterator or its chunk, so many rows can be looked at
// side by side.
//
// It is open (it), or it has a chunk of rows, or it is closed: then from is where it goes on, a row that
// was read, counted and, for want of room, not kept.
type cursor struct {
	prefix   []byte
	klen     int
	min      int    // length of the shortest well-formed row
	from, to []byte // what is left to open

	it         store.Iterator // nil: not open
	ahead      chunk
	key, value []byte // the row under the cursor, unless it is closed or done
	taken      bool   // the row was handed out
	again      bool   // from is the next row, counted already
	last       bool   // nothing comes after the chunk
	done       bool
	used       int64
	resume     []byte // room for from
}

// cut makes c the part of a lane that lies in a span.
func (c *cursor) cut(l *laneInfo, lay *Layout, lo, hi []byte) {
	c.prefix, c.klen = l.prefix, l.klen
	c.min = len(l.prefix) + l.klen + lay.MinRest
	end, _ := Successor(l.prefix)
	c.from, c.to = l.prefix, end
	if lo != nil {
		from, ok := bound(l.prefix, l.klen, lo)
		c.from, c.done = from, !ok
	}
	if hi != nil {
		if to, ok := bound(l.prefix, l.klen, hi); ok {
			c.to = to
		}
	}
	if c.to != nil && bytes.Compare(c.from, c.to) >= 0 {
		c.done = true
	}
}

// Seek moves to the rows of a user key. Keys are asked for in ascending order; rows of smaller keys of
// the same length go to Stray.
func (s *Set) Seek(key []byte) error {
	s.cur = nil
	i, ok := s.dir.byLen[len(key)]
	if !ok {
		return nil
	}
	c := &s.cursors[i]
	if c.done {
		return nil
	}
	s.want = append(append(s.want[:0], c.prefix...), key...)
	if err := s.ready(c); err != nil {
		return err
	}
	s.cur = c
	for !c.done && (len(c.key) < c.min || bytes.Compare(c.key[:len(s.want)], s.want) < 0) {
		if err := s.skip(c); err != nil {
			return err
		}
	}
	return nil
}

// Next returns the next row of the current key: what follows the key, and the value. Views live until the
// next call of any method; ok is false after the last row.
func (s *Set) Next() (rest, value []byte, ok bool, err error) {
	c := s.cur
	if c == nil {
		return nil, nil, false, nil
	}
	if c.taken {
		if err := s.advance(c); err != nil {
			return nil, nil, false, err
		}
	}
	for !c.done && len(c.key) < c.min {
		if err := s.skip(c); err != nil {
			return nil, nil, false, err
		}
	}
	if c.done || !bytes.HasPrefix(c.key, s.want) {
		return nil, nil, false, nil
	}
	c.taken = true
	return c.key[len(s.want):], c.value, true, nil
}

// Raw returns the whole raw key of the row that Next returned last.
func (s *Set) Raw() []byte {
	if s.cur == nil {
		return nil
	}
	return s.cur.key
}

// Place says where the row that Next returned last stands.
func (s *Set) Place() record.Place {
	if s.cur == nil {
		return record.Place{Level: -1}
	}
	return s.cur.place()
}

func (c *cursor) place() record.Place {
	switch {
	case c.it != nil:
		return c.it.Place()
	case !c.ahead.empty():
		return c.ahead.rows[c.ahead.at].place
	}
	return record.Place{Level: -1}
}

// Finish hands all rows that are left to Stray, those of lanes never asked for and those between lanes
// too.
func (s *Set) Finish() error {
	s.cur = nil
	for i := range s.cursors {
		c := &s.cursors[i]
		if c.done {
			continue
		}
		if err := s.ready(c); err != nil {
			return err
		}
		for !c.done {
			if err := s.skip(c); err != nil {
				return err
			}
		}
	}
	if !s.first {
		return nil
	}
	for _, g := range s.dir.gaps {
		if err := s.drain(g); err != nil {
			return err
		}
	}
	return nil
}

// drain hands the rows between two lanes to Stray.
func (s *Set) drain(g rawRange) (err error) {
	it, err := s.dir.keyspace.Rows(g.from, g.to)
	if err != nil {
		return err
	}
	defer func() {
		it.Tally(&s.tally)
		err = errors.Join(err, it.Close())
	}()
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		s.stray(record.Malformed, key, value, it.Place())
	}
}

// Tally adds what the rows read so far cost in entries to t and forgets it.
func (s *Set) Tally(t *record.Tally) {
	for _, c := range s.open {
		c.it.Tally(&s.tally)
	}
	t.Add(&s.tally)
	s.tally = record.Tally{}
}

// Close closes all lanes. What was not taken by Tally is lost.
func (s *Set) Close() error {
	var errs []error
	for _, c := range s.open {
		errs = append(errs, c.it.Close())
		c.it = nil
	}
	s.open, s.cur = nil, nil
	return errors.Join(errs...)
}

// skip hands the row under the cursor to Stray, unless it was handed out before, and moves on.
func (s *Set) skip(c *cursor) error {
	if !c.taken {
		class := record.Orphan
		if len(c.key) < c.min {
			class = record.Malformed
		}
		s.stray(class, c.key, c.value, c.place())
	}
	return s.advance(c)
}

// ready puts a row that was not handed out under the cursor, or finds the lane done.
func (s *Set) ready(c *cursor) error {
	s.tick++
	c.used = s.tick
	if c.key == nil {
		return s.load(c)
	}
	if c.taken {
		return s.advance(c)
	}
	return nil
}

// load opens a lane where it was left. When that is a row which was read before, what it costs in
// entries has been counted.
func (s *Set) load(c *cursor) error {
	if len(s.open) >= s.maxOpen {
		if err := s.evict(); err != nil {
			return err
		}
	}
	it, err := s.dir.keyspace.Rows(c.from, c.to)
	if err != nil {
		return err
	}
	c.it = it
	s.open = append(s.open, c)
	again := c.again
	c.again = false
	if err := s.advance(c); err != nil {
		return err
	}
	if again && c.it != nil {
		c.it.Tally(new(record.Tally))
	}
	return nil
}

// evict closes the lane that was used longest ago.
func (s *Set) evict() error {
	old := s.open[0]
	for _, c := range s.open {
		if c.used < old.used {
			old = c
		}
	}
	if err := s.fill(old); err != nil {
		return err
	}
	return s.shut(old)
}

// fill reads a chunk of an open lane, from the row under the cursor if that is still to be handed out.
// The row that has no room is where the lane goes on.
func (s *Set) fill(c *cursor) error {
	c.ahead.reset()
	for c.taken || c.ahead.add(c.key, c.value, c.it.Place(), s.chunk) {
		var err error
		c.taken = false
		c.key, c.value, err = c.it.Next()
		if err == io.EOF {
			c.last = true
			break
		}
		if err != nil {
			c.done, c.key, c.value = true, nil, nil
			return err
		}
	}
	if !c.last {
		c.resume = append(c.resume[:0], c.key...)
		c.from, c.again = c.resume, true
	}
	c.key, c.value = nil, nil
	switch {
	case !c.ahead.empty():
		c.key, c.value = c.ahead.row()
	case c.last:
		c.done = true
	}
	return nil
}

// shut closes the iterator of a lane and keeps its counts.
func (s *Set) shut(c *cursor) error {
	for i := range s.open {
		if s.open[i] == c {
			s.open[i] = s.open[len(s.open)-1]
			s.open = s.open[:len(s.open)-1]
			break
		}
	}
	c.it.Tally(&s.tally)
	err := c.it.Close()
	c.it = nil
	return err
}

// advance puts the next row under the cursor. A lane at its end is closed at once.
func (s *Set) advance(c *cursor) error {
	c.taken = false
	if c.it == nil {
		return s.advanceChunk(c)
	}
	var err error
	c.key, c.value, err = c.it.Next()
	if err == nil {
		return nil
	}
	c.done, c.key, c.value = true, nil, nil
	c.ahead = chunk{}
	if err == io.EOF {
		return s.shut(c)
	}
	return err
}

// advanceChunk moves on in a chunk and, at its end, opens the lane.
func (s *Set) advanceChunk(c *cursor) error {
	c.ahead.at++
	if !c.ahead.empty() {
		c.key, c.value = c.ahead.row()
		return nil
	}
	c.key, c.value = nil, nil
	if c.last {
		c.done, c.ahead = true, chunk{}
		return nil
	}
	return s.load(c)
}
