package state

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble"

	"kvferry/internal/scratch"
)

// get returns a copy of a row's value; false if there is none.
func (s *State) get(key []byte) ([]byte, bool) {
	v, closer, err := s.db.Get(key)
	if err != nil {
		if !errors.Is(err, pebble.ErrNotFound) {
			s.fail(err)
		}
		return nil, false
	}
	var out []byte
	if size, ok := s.large.sizeOf(v); ok {
		out, err = s.join(make([]byte, 0, size), key, size, nil)
		s.fail(err)
	} else {
		out = append(make([]byte, 0, len(v)), v...)
	}
	s.fail(closer.Close())
	return out, true
}

// has reports whether there is a row.
func (s *State) has(key []byte) bool {
	_, closer, err := s.db.Get(key)
	if err != nil {
		if !errors.Is(err, pebble.ErrNotFound) {
			s.fail(err)
		}
		return false
	}
	s.fail(closer.Close())
	return true
}

func (s *State) set(key, value []byte) {
	s.dropPieces(key)
	if len(value) > pieceBytes {
		s.setLarge(key, nil, value)
		return
	}
	s.write(key, value)
}

// write writes a row of the store.
func (s *State) write(key, value []byte) {
	if s.err == nil {
		s.fail(s.db.Set(key, value, pebble.NoSync))
	}
}

func (s *State) del(key []byte) {
	s.dropPieces(key)
	if s.err == nil {
		s.fail(s.db.Delete(key, pebble.NoSync))
	}
}

func (s *State) fail(err error) {
	if err != nil && s.Err() == nil {
		s.err = err
	}
}

// scan calls f with the rows that begin with a prefix, in order, until it returns false. key is what follows the
// prefix; both are views.
func (s *State) scan(prefix []byte, f func(key, value []byte) bool) { s.walk(prefix, nil, false, f) }

// walk is scan from a place behind the prefix on, or, backwards, from the end of the rows.
func (s *State) walk(prefix, from []byte, back bool, f func(key, value []byte) bool) {
	if s.err != nil {
		return
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: successor(prefix)})
	if err != nil {
		s.fail(err)
		return
	}
	step, ok := it.Next, false
	switch {
	case back:
		step, ok = it.Prev, it.Last()
	case from != nil:
		ok = it.SeekGE(append(prefix[:len(prefix):len(prefix)], from...))
	default:
		ok = it.First()
	}
	var joined []byte
	for ; ok; ok = step() {
		value := it.Value()
		if size, large := s.large.sizeOf(value); large {
			joined, err = s.join(scratch.Room(joined, int(size)), it.Key(), size, it)
			s.fail(err)
			value = joined
		}
		if !f(it.Key()[len(prefix):], value) {
			break
		}
	}
	s.fail(it.Error())
	s.fail(it.Close())
}

// successor is the least key behind all that begin with a prefix.
func successor(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// metaKey returns the row of a key of a database.
func (s *State) metaKey(db int, key []byte) []byte {
	out := make([]byte, 0, 5+len(key))
	return append(binary.BigEndian.AppendUint32(append(out, 'm'), s.space(db)), key...)
}

// dataKey returns a row of an id; the parts follow each other.
func dataKey(id uint64, parts ...[]byte) []byte {
	n := 9
	for _, p := range parts {
		n += len(p)
	}
	out := binary.BigEndian.AppendUint64(append(make([]byte, 0, n), 'd'), id)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
