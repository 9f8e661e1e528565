package circle

import (
	"bytes"
	"encoding/binary"
	"io"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
)

// circleScan walks the entries of [lo, hi) of a circle in the spool: by number, then key, the newest first.
type circleScan struct {
	ks    *Set
	index int
	c     *lsm.Cursor // nil when the spool is empty
	from  []byte
	begun bool
	// again says that the cursor stands at the entry that comes next.
	again bool

	// The current entry.
	key   []byte
	kind  byte
	shown bool
	// told says that an entry of the current key is shown: of two that the engine shows, the newer counts.
	told bool
}

// scan starts before the entries of circle i in [lo, hi).
func (ks *Set) scan(i int, lo, hi []byte) *circleScan {
	c := &ks.all[i]
	s := &circleScan{ks: ks, index: i}
	bound := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
	s.from = bound(i)
	if lo != nil && ks.ks.Comparer().Compare(lo, c.lo) > 0 {
		s.from = ks.key(nil, i, lo)
	}
	to := bound(i + 1)
	if hi != nil && ks.ks.Comparer().Compare(hi, c.hi) < 0 {
		to = ks.key(nil, i, hi)
	}
	if len(ks.circled.tables) > 0 {
		s.c = lsm.NewCursor(ks.circled.ks, ks.circled.tables, to)
	}
	return s
}

// next moves to the next entry; false without an error is the end.
func (s *circleScan) next() (bool, error) {
	if s.c == nil {
		return false, nil
	}
	var ok bool
	switch {
	case s.again:
		s.again, ok = false, !s.c.Done
	case s.begun:
		ok = s.c.Next()
	default:
		s.begun, ok = true, s.c.Seek(s.from)
	}
	if !ok {
		return false, s.c.Err
	}
	key := s.c.User()[circleHeadLen:]
	if !bytes.Equal(key, s.key) {
		s.told, s.key = false, append(s.key[:0], key...)
	}
	mark := byte(s.c.Tr)
	s.kind = mark &^ shownMark
	s.shown = mark&shownMark != 0 && !s.told
	s.told = s.told || s.shown
	return true, nil
}

// seek makes next move to the first entry at or after key, unless the current one is not before it.
func (s *circleScan) seek(key []byte) error {
	if s.c == nil || s.ks.ks.Comparer().Compare(key, s.ks.all[s.index].lo) <= 0 {
		return nil
	}
	at := s.ks.key(nil, s.index, key)
	if !s.begun {
		if bytes.Compare(at, s.from) > 0 {
			s.from = at
		}
		return nil
	}
	if !s.c.Done && bytes.Compare(s.c.User(), at) < 0 {
		s.c.Seek(at)
		s.again = true
	}
	return s.c.Err
}

// place says where the current entry stands.
func (s *circleScan) place() record.Place {
	if s.c == nil || s.c.T == nil {
		return record.Place{Level: -1}
	}
	return s.c.Place()
}

func (s *circleScan) close() {
	if s.c != nil {
		s.c.Close()
	}
}

// circleRows yields the rows of a circle that the engine shows.
type circleRows struct {
	*circleScan
	n record.Tally
}

// Next returns the next row.
func (r *circleRows) Next() (key, value []byte, err error) {
	for {
		ok, err := r.next()
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			return nil, nil, io.EOF
		}
		r.n.Entries++
		switch {
		case r.shown:
			r.n.Visible++
			return r.key[:len(r.key):len(r.key)], r.c.Val, nil
		case r.kind == base.KindDelete:
			r.n.Tombstones++
		default:
			r.n.Superseded++
		}
	}
}

// SeekGE makes Next return the first row at or after key.
func (r *circleRows) SeekGE(key []byte) error { return r.seek(key) }

// Place says where the row last returned stands.
func (r *circleRows) Place() record.Place { return r.place() }

// Tally hands over the counts.
func (r *circleRows) Tally(t *record.Tally) {
	t.Add(&r.n)
	r.n = record.Tally{}
}

// Close releases the files.
func (r *circleRows) Close() error {
	r.close()
	return nil
}

// circleEntries yields all entries of a circle.
type circleEntries struct {
	*circleScan
	e store.Entry
}

// Next returns the next entry.
func (it *circleEntries) Next() (*store.Entry, error) {
	ok, err := it.next()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, io.EOF
	}
	kind, err := lsm.KindOf(uint64(it.kind))
	if err != nil {
		return nil, err
	}
	it.e = store.Entry{Key: it.key, Value: it.c.Val, Seq: it.c.Tr >> 8, Kind: kind, Place: it.place(), Circular: true, Shown: it.shown}
	return &it.e, nil
}

// Close releases the files.
func (it *circleEntries) Close() error {
	it.close()
	return nil
}
