package keylanes

import (
	"bytes"
	"errors"
	"io"
	"sort"

	"kvferry/record"
	"kvferry/store"
)

// MaxOpen is the default limit of the lanes of a set that are open at once. Beyond it the least recently used
// lane is closed, after reading a chunk ahead, so that the cost of reopening is shared by the rows of a chunk.
const MaxOpen = 64

// minOpen is the number of lanes kept open regardless of the size of iterators.
const minOpen = 4

// Set walks all lanes of a keyspace within a span of user keys. Once Finish was called, every row of the span
// has been returned exactly once, by Next or to Stray. A Set is used by one goroutine.
type Set struct {
	dir     *Directory
	byLen   map[int]int // key length to index in cursors
	first   bool
	stray   Stray
	maxOpen int
	chunk   int // bytes of rows that a closed lane keeps

	cursors []cursor
	open    []*cursor
	tick    int64
	spare   [][]store.Row // memory for rows, from closed lanes
	views   []store.Row   // memory for a batch from a chunk

	cur   *cursor // lane of the current key, or nil
	want  []byte  // prefix and current key
	start int     // index of the last batch's first row in its cursor's rows or chunk
	tally record.Tally

	firsts firsts    // nil until First is called
	asked  []*cursor // since First was called last
}

// cursor walks one lane. Its row is a view into its iterator or its chunk, so the rows of many lanes are
// available at once.
//
// A cursor is open (it), or has a chunk of rows, or is closed: then it continues at from, a row that was read
// and counted but not kept, for lack of room.
type cursor struct {
	prefix   []byte
	klen     int
	min      int    // length of the shortest well-formed row
	from, to []byte // the range left to open

	it     store.Batcher // nil: not open
	rows   []store.Row   // read from it, in one go
	wait   store.Waiting // has them
	at     int           // the row of them under the cursor
	ahead  chunk
	row    store.Row // under the cursor, unless it is closed or done
	taken  bool      // the row was returned
	again  bool      // from is the next row, counted already
	last   bool      // the lane ends after the chunk
	done   bool
	used   int64
	resume []byte // room for from
	next   []byte // user key of its next row, for First
	rank   int    // in Set.firsts
}

// cut sets c to the part of a lane within a span.
func (c *cursor) cut(l *laneInfo, lay *Layout, lo, hi []byte) {
	c.prefix, c.klen = l.prefix, l.klen
	c.min = len(l.prefix) + l.klen + lay.MinRest
	end, _ := store.Successor(l.prefix)
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

// Seek moves to the rows of a user key. Calls must have ascending keys; rows of smaller keys of the same
// length go to Stray.
func (s *Set) Seek(key []byte) error {
	s.cur = nil
	i, ok := s.byLen[len(key)]
	if !ok || s.cursors[i].done {
		return nil
	}
	c := &s.cursors[i]
	s.want = append(append(s.want[:0], c.prefix...), key...)
	if err := s.ready(c); err != nil {
		return err
	}
	s.cur = c
	if s.firsts != nil {
		s.asked = append(s.asked, c)
	}
	for !c.done && (len(c.row.Key) < c.min || bytes.Compare(c.row.Key[:len(s.want)], s.want) < 0) {
		if err := s.skip(c); err != nil {
			return err
		}
	}
	c.release()
	return nil
}

// SeekRow moves forward to the first row at or after one, of the current key or a later one. Rows in between are not
// returned.
func (s *Set) SeekRow(raw []byte) error {
	c := s.cur
	compare := s.dir.keyspace.Comparer().Compare
	// A closed lane has a chunk of its rows in memory.
	for c != nil && !c.done && c.it == nil && compare(c.row.Key, raw) < 0 {
		if err := s.advance(c); err != nil {
			return err
		}
	}
	if c == nil || c.done || c.it == nil {
		return nil
	}
	for at := c.at; at < len(c.rows); at++ {
		if compare(c.rows[at].Key, raw) >= 0 {
			c.at, c.row, c.taken = at, c.rows[at], false
			return nil
		}
	}
	if err := c.it.SeekGE(raw); err != nil {
		return err
	}
	c.rows, c.at = c.rows[:0], 0
	if err := c.step(record.BatchLen); err != nil || !c.done {
		return err
	}
	return s.end(c)
}

// Next returns the next row of the current key: the raw key after the user key, and the value. Views are valid
// until the next call of any method; ok is false after the last row.
func (s *Set) Next() (rest, value []byte, ok bool, err error) {
	rows, skip, err := s.Batch(1)
	if err != nil || len(rows) == 0 {
		return nil, nil, false, err
	}
	return rows[0].Key[skip:], rows[0].Value, true, nil
}

// Released reports whether values of the next rows were freed until Batch returns them.
func (s *Set) Released() bool {
	c := s.cur
	return c != nil && c.it != nil && c.wait.Here < len(c.wait.Rows)
}

// Ended reports whether the last Batch certainly had the last rows of its key: the next row in memory is of another.
func (s *Set) Ended() bool {
	c := s.cur
	if c == nil || c.it == nil || c.at+1 >= len(c.rows) {
		return false
	}
	next := c.rows[c.at+1].Key
	return len(next) >= c.min && !bytes.HasPrefix(next, s.want)
}

// Batch returns some of the next rows of the current key, between one and limit, and the length of the common
// prefix of their keys; it returns no rows after the last. Views are valid until the next call of any method.
func (s *Set) Batch(limit int) (rows []store.Row, skip int, err error) {
	c := s.cur
	if c == nil {
		return nil, 0, nil
	}
	if c.taken {
		if err := s.advance(c); err != nil {
			return nil, 0, err
		}
	}
	for !c.done && len(c.row.Key) < c.min {
		if err := s.skip(c); err != nil {
			return nil, 0, err
		}
	}
	if c.done || !bytes.HasPrefix(c.row.Key, s.want) {
		c.release()
		return nil, 0, nil
	}
	rows = s.same(c, s.under(c, limit))
	if err := c.reloadValues(); err != nil {
		return nil, 0, err
	}
	c.taken, c.row = true, rows[len(rows)-1]
	return rows, len(s.want), nil
}

// release frees the large values of an open lane until its turn comes.
func (c *cursor) release() {
	if c.it == nil {
		return
	}
	c.wait.Release()
	if c.at >= c.wait.Here {
		c.row.Value = nil
	}
}

// reloadValues loads the values of an open lane again if the row under the cursor is among the freed ones.
func (c *cursor) reloadValues() error {
	if c.it == nil || c.at < c.wait.Here {
		return nil
	}
	err := c.wait.Reload()
	c.row = c.rows[c.at]
	return err
}

// under returns the rows in memory, starting with the row under the cursor.
func (s *Set) under(c *cursor, limit int) []store.Row {
	if c.it != nil {
		s.start = c.at
		return c.rows[c.at:min(len(c.rows), c.at+limit)]
	}
	s.start = c.ahead.at
	s.views = c.ahead.views(s.views[:0], min(limit, record.BatchLen))
	return s.views
}

// same truncates rows after the last well-formed row of the current key, and moves the cursor to that row. The
// first row is well-formed. Rows ascend, so all rows between two with a common prefix have it, and only the
// first can equal it.
func (s *Set) same(c *cursor, rows []store.Row) []store.Row {
	if !bytes.HasPrefix(rows[len(rows)-1].Key, s.want) {
		end := sort.Search(len(rows)-1, func(i int) bool { return !bytes.HasPrefix(rows[i].Key, s.want) })
		rows = rows[:end]
	}
	n := len(rows)
	if c.min > len(s.want)+1 {
		n = 1
		for n < len(rows) && len(rows[n].Key) >= c.min {
			n++
		}
	}
	if c.it != nil {
		c.at += n - 1
	} else {
		c.ahead.at += n - 1
	}
	return rows[:n]
}

// Raw returns the whole raw key of the row that Next returned last.
func (s *Set) Raw() []byte {
	if s.cur == nil {
		return nil
	}
	return s.cur.row.Key
}

// Place returns the place of the row that Next returned last.
func (s *Set) Place() record.Place { return s.PlaceAt(0) }

// PlaceAt returns the place of row i of the last batch.
func (s *Set) PlaceAt(i int) record.Place {
	if s.cur == nil {
		return record.Place{Level: -1}
	}
	return s.cur.placeAt(s.start + i)
}

// place returns the place of the row under the cursor.
func (c *cursor) place() record.Place {
	if c.it != nil {
		return c.placeAt(c.at)
	}
	return c.placeAt(c.ahead.at)
}

// placeAt returns the place of a row in memory.
func (c *cursor) placeAt(i int) record.Place {
	switch {
	case c.it != nil:
		return c.it.PlaceAt(i)
	case i < len(c.ahead.rows):
		return c.ahead.rows[i].place
	}
	return record.Place{Level: -1}
}

// Finish passes all remaining rows to Stray, including rows of lanes never used and rows between lanes.
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

// drain passes the rows between two lanes to Stray.
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

// Tally adds the entries of the rows read so far to t and resets its own count.
func (s *Set) Tally(t *record.Tally) {
	for _, c := range s.open {
		c.it.Tally(&s.tally)
	}
	t.Add(&s.tally)
	s.tally = record.Tally{}
}

// Close closes all lanes. Counts not fetched by Tally are lost.
func (s *Set) Close() error {
	var errs []error
	for _, c := range s.open {
		errs = append(errs, c.it.Close())
		c.it = nil
	}
	s.open, s.cur = nil, nil
	return errors.Join(errs...)
}

// skip passes the row under the cursor to Stray, unless it was returned before, and moves on.
func (s *Set) skip(c *cursor) error {
	if !c.taken {
		if err := c.reloadValues(); err != nil {
			return err
		}
		class := record.Orphan
		if len(c.row.Key) < c.min {
			class = record.Malformed
		}
		s.stray(class, c.row.Key, c.row.Value, c.place())
	}
	return s.advance(c)
}

// ready puts a row that was not returned under the cursor, or finds the lane done.
func (s *Set) ready(c *cursor) error {
	s.tick++
	c.used = s.tick
	if c.row.Key == nil {
		return s.load(c)
	}
	if c.taken {
		return s.advance(c)
	}
	return nil
}

// load opens a lane where it was left. If it was left at a row that was read before, the entries of the row
// have been counted.
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
	c.it = store.Batched(it)
	c.wait = store.Wait(c.it)
	s.open = append(s.open, c)
	s.lend(c)
	again, limit := c.again, record.BatchLen
	if again {
		limit = 1
	}
	c.again = false
	if err := c.step(limit); err != nil {
		return err
	}
	if c.done {
		return s.end(c)
	}
	if again {
		c.it.Tally(new(record.Tally))
	}
	return nil
}

// lend gives a lane memory for rows.
func (s *Set) lend(c *cursor) {
	if n := len(s.spare); n > 0 {
		c.rows, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	c.rows, c.at = c.rows[:0], 0
}

// evict closes the least recently used lane.
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

// fill reads a chunk of an open lane, starting with the row under the cursor unless it was returned. The lane
// will continue at the first row without room; rows read after it are discarded.
func (s *Set) fill(c *cursor) error {
	c.ahead.reset()
	if err := c.wait.Reload(); err != nil {
		return err
	}
	if !c.done {
		c.row = c.rows[c.at]
	}
	for !c.done && (c.taken || c.ahead.add(c.row.Key, c.row.Value, c.place(), s.chunk)) {
		if err := c.step(record.BatchLen); err != nil {
			return err
		}
	}
	c.last = c.done
	if !c.last {
		c.resume = append(c.resume[:0], c.row.Key...)
		c.from, c.again = c.resume, true
		unread := int64(len(c.rows) - 1 - c.at)
		s.tally.Entries -= unread
		s.tally.Visible -= unread
	}
	c.row, c.done = store.Row{}, c.last && c.ahead.empty()
	if !c.ahead.empty() {
		c.row = c.ahead.row()
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
	clear(c.rows)
	s.spare = append(s.spare, c.rows[:0])
	c.rows, c.at = nil, 0
	c.it.Tally(&s.tally)
	err := c.it.Close()
	c.it, c.wait = nil, store.Waiting{}
	return err
}

// end closes an open lane that is done.
func (s *Set) end(c *cursor) error {
	c.ahead = chunk{}
	return s.shut(c)
}

// advance puts the next row under the cursor. A lane at its end is closed at once.
func (s *Set) advance(c *cursor) error {
	if c.it == nil {
		return s.advanceChunk(c)
	}
	if err := c.step(record.BatchLen); err != nil || !c.done {
		return err
	}
	return s.end(c)
}

// step puts the next row of an open lane under the cursor, reading up to limit rows, or finds the lane done.
func (c *cursor) step(limit int) error {
	c.taken = false
	if c.at+1 < len(c.rows) {
		c.at++
		c.row = c.rows[c.at]
		return nil
	}
	c.row.Value = nil // if it is large, its block is dropped
	room := record.Room(c.rows[:cap(c.rows)])
	n, err := c.it.NextBatch(room[:min(limit, len(room))])
	c.rows, c.at = room[:n], 0
	c.wait.Set(c.rows)
	if err != nil {
		c.done, c.row = true, store.Row{}
		if err == io.EOF {
			return nil
		}
		return err
	}
	c.row = c.rows[0]
	return nil
}

// advanceChunk moves on in a chunk and, at its end, opens the lane.
func (s *Set) advanceChunk(c *cursor) error {
	c.taken = false
	c.ahead.at++
	if !c.ahead.empty() {
		c.row = c.ahead.row()
		return nil
	}
	c.row = store.Row{}
	if c.last {
		c.done, c.ahead = true, chunk{}
		return nil
	}
	return s.load(c)
}
