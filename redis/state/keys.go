package state

import (
	"bytes"
	"maps"
	"slices"

	"kvferry/record"
)

// Select sets the database of calls that do not name one.
func (s *State) Select(db int) { s.current = db }

// Selected returns the selected database.
func (s *State) Selected() int { return s.current }

// space returns the number of a database's rows.
func (s *State) space(db int) uint32 {
	n, ok := s.spaces[db]
	if !ok {
		s.nextSpace++
		n = s.nextSpace
		s.spaces[db] = n
	}
	return n
}

// Flush removes all keys of the selected database.
func (s *State) Flush() { delete(s.spaces, s.current) }

// FlushAll removes all keys.
func (s *State) FlushAll() { clear(s.spaces) }

// FlushWhere removes the keys of all databases for which in returns true.
func (s *State) FlushWhere(in func(key []byte) bool) {
	for _, db := range s.databases() {
		s.scan(s.metaKey(db, nil), func(key, _ []byte) bool {
			if in(key) {
				s.removeIn(db, key)
			}
			return true
		})
	}
}

// ImportHalf counts the keys in slots that the server was importing at the end, for which in returns true. They are no records
// unless keep is set.
func (s *State) ImportHalf(in func(key []byte) bool, keep bool) (n int64) {
	for _, db := range s.databases() {
		s.scan(s.metaKey(db, nil), func(key, _ []byte) bool {
			if in(key) {
				n++
			}
			return true
		})
	}
	if !keep {
		s.half = in
	}
	return n
}

// isHalf reports whether a key is no record, because its slot was being imported.
func (s *State) isHalf(key []byte) bool { return s.half != nil && s.half(key) }

// Swap swaps the keys of two databases.
func (s *State) Swap(x, y int) {
	sx, sy := s.space(x), s.space(y)
	s.spaces[x], s.spaces[y] = sy, sx
}

// Find returns the value of a key, nil if the key does not exist.
func (s *State) Find(key []byte) *Value { return s.FindIn(s.current, key) }

// FindIn is Find in a database.
func (s *State) FindIn(db int, key []byte) *Value {
	b, ok := s.look(s.metaKey(db, key))
	if !ok {
		return nil
	}
	v := s.decodeValue(b)
	v.inlined = bytes.Clone(v.inlined)
	return v
}

// Store assigns a value to a key, or removes the key if the value has no elements left. Strings and streams
// may be empty. Changes to a value's elements are visible at once; other changes, such as the number of
// elements, only after Store.
func (s *State) Store(key []byte, v *Value) { s.StoreIn(s.current, key, v) }

// StoreIn is Store in a database.
func (s *State) StoreIn(db int, key []byte, v *Value) {
	switch {
	case v.lost != 0:
		v.lost = lostKey // a command gave it a key
	case v.Type == record.String:
		v.spill()
	case v.Type != record.Stream && v.Empty():
		s.removeIn(db, key)
		return
	}
	row := s.metaKey(db, key)
	if v.Type != record.String || !v.inline {
		s.others.Add(s.large.hash(row))
	}
	s.set(row, v.append(make([]byte, 0, 64+len(v.inlined))))
}

// Remove removes a key.
func (s *State) Remove(key []byte) { s.removeIn(s.current, key) }

func (s *State) removeIn(db int, key []byte) { s.del(s.metaKey(db, key)) }

// databases lists the databases that were ever used, in order.
func (s *State) databases() []int { return slices.Sorted(maps.Keys(s.spaces)) }
