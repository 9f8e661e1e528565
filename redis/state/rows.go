package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/sstable"

	"kvferry/internal/sys/bufpool"
)

// get returns a copy of a row's value; false if the row does not exist.
func (s *State) get(key []byte) ([]byte, bool) {
	v, ok := s.look(key)
	if !ok {
		return nil, false
	}
	if size, large := s.large.sizeOf(v); large {
		out, err := s.join(make([]byte, 0, size), key, size, nil)
		s.fail(err)
		return out, true
	}
	return append(make([]byte, 0, len(v)), v...), true
}

// has reports whether a row exists.
func (s *State) has(key []byte) bool {
	_, ok := s.look(key)
	return ok
}

// look returns the value of a row, valid until the next row is read or changed; false if the row does not
// exist.
func (s *State) look(key []byte) ([]byte, bool) {
	if s.recent == nil {
		return s.stored(key)
	}
	if r := s.recent.find(key); r != nil && r.flags()&rowTail != 0 {
		v := bytes.Clone(r.value())
		if base, ok := s.stored(key); ok {
			v = appendTail(base, v)
		}
		s.write(key, v)
		return v, true
	} else if r != nil {
		return r.value(), r.flags()&rowGone == 0
	}
	if !s.mayBeStored(key) {
		return nil, false
	}
	v, ok := s.stored(key)
	switch {
	case oversize(key, v):
	case ok:
		s.keep(key, v, rowStored)
	default:
		s.keep(key, nil, rowGone)
	}
	return v, ok
}

// peek is has without the store; sure is false if only the store knows.
func (s *State) peek(key []byte) (there, sure bool) {
	if r := s.recent.find(key); r != nil {
		return r.flags()&rowGone == 0, true
	}
	return false, !s.mayBeStored(key)
}

// stored returns a copy of a row's value in the store; false if the store does not have the row.
func (s *State) stored(key []byte) ([]byte, bool) {
	if s.db == nil {
		c, err := s.rows(key, append(slices.Clip(key), 0), false)
		if s.fail(err); err != nil || !c.Next() {
			return nil, false
		}
		return bytes.Clone(c.value), true
	}
	v, closer, err := s.db.Get(key)
	if err != nil {
		if !errors.Is(err, pebble.ErrNotFound) {
			s.fail(err)
		}
		return nil, false
	}
	out := append(make([]byte, 0, len(v)), v...)
	s.fail(closer.Close())
	return out, true
}

// mayBeStored reports whether the store may have a row. It has no rows of ids newer than all rows written to
// it.
func (s *State) mayBeStored(key []byte) bool {
	if len(key) > 8 && key[0] == 'd' {
		return binary.BigEndian.Uint64(key[1:]) < s.storedID
	}
	return s.storedID > 0
}

// oversize reports whether a row is too large for the cache.
func oversize(key, value []byte) bool { return recentHead+len(key)+len(value) > recentRow }

// keep caches a row with flags; if the cache is full, it makes room first.
func (s *State) keep(key, value []byte, flags uint32) {
	for {
		if flags&rowDirty != 0 && s.mayBeStored(key) {
			flags |= rowStored
		}
		if s.recent.put(key, value, flags) {
			return
		}
		key, value = bytes.Clone(key), bytes.Clone(value) // they may be views of rows
		s.makeRoom()
	}
}

// makeRoom drops rows of the full cache that it does not need.
func (s *State) makeRoom() {
	if c := s.recent; c.dead > c.limit/4 {
		c.keep(func(row) bool { return true })
	} else {
		s.settle()
		c.age()
	}
}

// settle writes the changed rows to the store.
func (s *State) settle() {
	if s.recent == nil || len(s.recent.dirty) == 0 || s.err != nil {
		return
	}
	places := s.recent.changed()
	if !s.open() {
		return
	}
	if s.storedID = s.nextID; len(places) >= tableRows {
		s.fail(s.ingest(places))
		return
	}
	b := s.db.NewBatch()
	for _, place := range places {
		switch r := s.recent.at(place); {
		case r.flags()&rowGone != 0:
			s.fail(b.Delete(r.key(), nil))
		case r.flags()&rowTail != 0:
			s.fail(b.Merge(r.key(), r.value(), nil))
		default:
			s.fail(b.Set(r.key(), r.value(), nil))
		}
		if b.Len() >= settleBytes {
			s.apply(b)
			b.Reset()
		}
	}
	s.apply(b)
	s.fail(b.Close())
}

const (
	// settleBytes is the approximate number of bytes written to the store at once.
	settleBytes = 256 << 10
	// tableRows is the number of rows from which they are written as tables of their own, which takes less than half as
	// long: they do not pass through a memtable.
	tableRows = 2000
	// tableBytes is the approximate size of such a table.
	tableBytes = 8 << 20
)

// ingest adds rows in key order to the store as tables.
func (s *State) ingest(places []uint32) error {
	fs := spillFS{FS: s.fs, F: s.failure}
	o := s.options.MakeWriterOptions(0, s.db.FormatMajorVersion().MaxTableFormat())
	var paths []string
	for len(places) > 0 {
		path := s.fs.PathJoin(s.dir, fmt.Sprintf("run%d", len(paths)))
		file, err := fs.Create(path)
		if err != nil {
			return err
		}
		w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), o)
		kind := s.recent.at(places[0]).key()[0] // rows of elements may be merged without those of keys
		for n := 1; len(places) > 0 && err == nil && (n%256 > 0 || w.EstimatedSize() < tableBytes); n++ {
			r := s.recent.at(places[0])
			if r.key()[0] != kind {
				break
			}
			switch {
			case r.flags()&rowGone != 0:
				err = w.Delete(r.key())
			case r.flags()&rowTail != 0:
				err = w.Merge(r.key(), r.value())
			default:
				err = w.Set(r.key(), r.value())
			}
			places = places[1:]
		}
		if err = cmp.Or(err, w.Close()); err != nil {
			return err
		}
		paths = append(paths, path)
	}
	return s.db.Ingest(paths)
}

func (s *State) apply(b *pebble.Batch) {
	if s.err == nil && !b.Empty() {
		s.fail(s.db.Apply(b, pebble.NoSync))
	}
}

func (s *State) set(key, value []byte) {
	s.dropPieces(key)
	if len(value) > pieceBytes {
		s.setLarge(key, nil, value)
		return
	}
	s.write(key, value)
}

// write writes a row.
func (s *State) write(key, value []byte) {
	if s.err != nil {
		return
	}
	if !oversize(key, value) {
		s.keep(key, value, rowDirty)
		return
	}
	s.recent.forget(key)
	s.writeOut(key, value)
}

// writeOut writes a row to the store.
func (s *State) writeOut(key, value []byte) {
	if s.open() {
		s.fail(s.db.Set(key, value, pebble.NoSync))
		s.storedID = s.nextID
	}
}

func (s *State) del(key []byte) {
	s.dropPieces(key)
	if s.err != nil {
		return
	}
	if oversize(key, nil) {
		if s.open() {
			s.fail(s.db.Delete(key, pebble.NoSync))
		}
		return
	}
	s.keep(key, nil, rowDirty|rowGone)
}

func (s *State) fail(err error) {
	if err != nil && s.Err() == nil {
		s.err = err
	}
}

// scan calls f with the rows that begin with a prefix, in order, until f returns false. key is the part after
// the prefix; both arguments are views.
func (s *State) scan(prefix []byte, f func(key, value []byte) bool) { s.walk(prefix, nil, false, f) }

// walk is scan from a position after the prefix, or backwards from before it; nil is the first or the last row.
func (s *State) walk(prefix, from []byte, back bool, f func(key, value []byte) bool) {
	lower, upper := prefix, successor(prefix)
	switch {
	case from != nil && back:
		upper = slices.Concat(prefix, from)
	case from != nil:
		lower = slices.Concat(prefix, from)
	}
	var key, joined []byte
	for more := true; more && s.err == nil; {
		c, err := s.rows(lower, upper, back)
		if err != nil {
			s.fail(errors.Join(err, c.Close()))
			return
		}
		more = false
		for !more && c.Next() {
			key = append(key[:0], c.key...)
			value := c.value
			if size, large := s.large.sizeOf(value); large {
				joined, err = s.join(bufpool.Room(joined, int(size)), key, size, c.from)
				s.fail(err)
				value = joined
			}
			if !f(key[len(prefix):], value) {
				break
			}
			if more = c.moved(); more && back {
				upper = bytes.Clone(key)
			} else if more {
				lower = append(bytes.Clone(key), 0)
			}
		}
		s.fail(errors.Join(c.Error(), c.Close()))
	}
}

// successor returns the least key after all keys that begin with a prefix.
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
	n := 9 + 16 // and a number or two that the caller appends
	for _, p := range parts {
		n += len(p)
	}
	out := binary.BigEndian.AppendUint64(append(make([]byte, 0, n), 'd'), id)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
