package state

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble"

	"kvferry/record"
)

// cursor passes the rows of a range in the order of their keys, or backwards: the changed rows of the cache, and the rows
// of the store that they do not hide. It starts before the first row and is valid until rows of the cache move. It
// shows either version of a row that changes while it is open.
type cursor struct {
	store  *pebble.Iterator // nil: the store has no such rows
	there  bool             // store is at a row
	passed bool             // that row is the current one, or hidden
	cache  *recent
	runs   []run
	back   bool
	moves  int // of the cache when the cursor was made

	key, value []byte           // of the current row: views until the cursor or the cache moves
	from       *pebble.Iterator // store, if the current row is a row of it
	joined     []byte
}

// run is a part of the cache's changed rows.
type run struct {
	left []uint32 // places of the rows after next
	next row
	key  []byte // of next; nil after the last row
}

// rows returns a cursor of the rows lower <= key < upper; nil is no upper bound.
func (s *State) rows(lower, upper []byte, back bool) (*cursor, error) {
	c := &cursor{cache: cmp.Or(s.recent, s.kept), back: back}
	if c.cache != nil {
		c.runs = c.cache.between(lower, upper)
		for i := range c.runs {
			c.peek(&c.runs[i])
		}
		c.moves = c.cache.moves
	}
	if s.db == nil || s.recent != nil && !s.mayBeStored(lower) {
		return c, nil
	}
	var err error
	if c.store, err = s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper}); err != nil {
		return nil, err
	}
	if c.there = !back && c.store.First() || back && c.store.Last(); !c.there {
		err = c.store.Error()
	}
	return c, err
}

// between returns the runs of changed rows lower <= key < upper.
func (c *recent) between(lower, upper []byte) []run {
	c.order()
	out := make([]run, 0, len(c.runs))
	begin := 0
	for _, end := range c.runs {
		all := c.dirty[begin:end]
		search := func(key []byte) int {
			return sort.Search(len(all), func(i int) bool { return bytes.Compare(c.at(all[i]).key(), key) >= 0 })
		}
		from, to := search(lower), len(all)
		if upper != nil {
			to = search(upper)
		}
		if begin = end; from < to {
			out = append(out, run{left: all[from:to]})
		}
	}
	return out
}

// peek takes the next row of a run.
func (c *cursor) peek(r *run) {
	n := len(r.left) - 1
	switch {
	case n < 0:
		r.next, r.key = nil, nil
		return
	case c.back:
		r.next, r.left = c.cache.at(r.left[n]), r.left[:n]
	default:
		r.next, r.left = c.cache.at(r.left[0]), r.left[1:]
	}
	r.key = r.next.key()
}

// before reports whether key a comes before b on the way.
func (c *cursor) before(a, b []byte) bool {
	return bytes.Compare(a, b) < 0 != c.back && !bytes.Equal(a, b)
}

// Next moves to the next row.
func (c *cursor) Next() bool {
	for {
		if c.passed {
			c.passed = false
			c.there = !c.back && c.store.Next() || c.back && c.store.Prev()
		}
		var key []byte
		for i := range c.runs {
			if k := c.runs[i].key; k != nil && (key == nil || c.before(k, key)) {
				key = k
			}
		}
		if c.there && (key == nil || !c.before(key, c.store.Key())) {
			c.key, c.value, c.from, c.passed = c.store.Key(), c.store.Value(), c.store, true
			if key == nil || !bytes.Equal(key, c.key) {
				return true
			}
		} else if c.from = nil; key == nil {
			return false
		}
		var r row
		for i := range c.runs {
			for bytes.Equal(c.runs[i].key, key) {
				if x := c.runs[i].next; x.flags()&rowDirty != 0 {
					r = x
				}
				c.peek(&c.runs[i])
			}
		}
		if r == nil { // it moved since the cursor was made
			r = c.cache.find(key)
		}
		if c.current(key, r) {
			return true
		}
	}
}

// current makes a row of the cache the current one, if it exists. It may be at the row of the store that this one hides.
func (c *cursor) current(key []byte, r row) bool {
	switch {
	case r == nil:
		return c.from != nil
	case r.flags()&rowGone != 0:
		return false
	case r.flags()&rowTail != 0 && c.from != nil:
		c.joined = appendTail(append(c.joined[:0], c.value...), r.value())
		c.value, c.from = c.joined, nil
	default:
		c.key, c.value, c.from = key, r.value(), nil
	}
	return true
}

// moved reports whether rows of the cache moved, which ends the use of the cursor.
func (c *cursor) moved() bool { return c.cache != nil && c.cache.moves != c.moves }

// Close closes the cursor and returns the first error.
func (c *cursor) Close() error {
	if c == nil || c.store == nil {
		return nil
	}
	return c.store.Close()
}

// Error returns the error that ended the rows.
func (c *cursor) Error() error {
	if c.store == nil {
		return nil
	}
	return c.store.Error()
}

// Stretch is a key and the approximate number of bytes from it to the next Stretch.
type Stretch struct {
	Key   []byte
	Bytes int64
}

// Weigh returns up to n keys of some types at equal distances, including the first. The state must be sealed.
func (s *State) Weigh(db int, types record.TypeSet, n int) (out []Stretch, err error) {
	z := s.sizes[db]
	if z == nil || n < 1 {
		return nil, nil
	}
	var all int64
	for t, bytes := range z.Bytes {
		if types.Has(record.Type(t)) {
			all += bytes
		}
	}
	each := all/int64(n) + 1
	s.scan(s.metaPrefix(db), func(key, value []byte) bool {
		v := s.decodeValue(value)
		if !types.Has(v.Type) {
			return true
		}
		if len(out) == 0 || out[len(out)-1].Bytes >= each {
			out = append(out, Stretch{Key: slices.Clone(key)})
		}
		out[len(out)-1].Bytes += v.size(key, value)
		return true
	})
	return out, s.Err()
}
