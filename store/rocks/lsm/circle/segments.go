package circle

import (
	"bytes"
	"io"

	"kvferry/record"
	"kvferry/store"
)

// Rows yields the newest visible row of each key in [lo, hi).
func (ks *Set) Rows(lo, hi []byte) (store.Iterator, error) {
	if err := ks.prepare(); err != nil {
		return nil, err
	}
	return &segmentedRows{segments: segments{ks: ks, lo: bytes.Clone(lo), hi: bytes.Clone(hi)}}, nil
}

// Entries yields every physical entry in [lo, hi).
func (ks *Set) Entries(lo, hi []byte) (store.EntryIterator, error) {
	if err := ks.prepare(); err != nil {
		return nil, err
	}
	return &segmentedEntries{segments: segments{ks: ks, lo: bytes.Clone(lo), hi: bytes.Clone(hi)}}, nil
}

// segments cuts [lo, hi) into the circles in it and what is between them.
type segments struct {
	ks     *Set
	lo, hi []byte // of what is to come
	ended  bool
}

// next returns the next segment [lo, hi), which is of circle i, or of none when i is negative.
func (s *segments) next() (lo, hi []byte, i int, ok bool) {
	compare := s.ks.ks.Comparer().Compare
	if s.ended || s.hi != nil && s.lo != nil && compare(s.lo, s.hi) >= 0 {
		return nil, nil, 0, false
	}
	i = s.ks.from(s.lo)
	lo, hi = s.lo, nil
	switch {
	case i == len(s.ks.all):
		i = -1
	case lo == nil || compare(lo, s.ks.all[i].lo) < 0:
		hi, i = s.ks.all[i].lo, -1
	default:
		hi = s.ks.all[i].hi
	}
	if hi == nil || s.hi != nil && compare(s.hi, hi) < 0 {
		hi = s.hi
	}
	s.lo, s.ended = hi, hi == nil
	return lo, hi, i, true
}

// segmentedRows yields the rows of one segment after the other.
type segmentedRows struct {
	segments
	cur store.Iterator // nil between segments
	to  []byte         // where cur's segment ends
	n   record.Tally   // of segments that are done with
	err error
}

// Next returns the next row.
func (r *segmentedRows) Next() (key, value []byte, err error) {
	for r.err == nil {
		if r.cur == nil {
			if r.err = r.open(); r.err != nil {
				break
			}
		}
		key, value, err := r.cur.Next()
		if err == nil {
			return key, value, nil
		}
		if err != io.EOF {
			r.err = err
			break
		}
		r.leave()
	}
	return nil, nil, r.err
}

// open opens the next segment; io.EOF when there is none.
func (r *segmentedRows) open() error {
	lo, hi, i, ok := r.next()
	if !ok {
		return io.EOF
	}
	if r.to = hi; i >= 0 {
		r.cur = &circleRows{circleScan: r.ks.scan(i, lo, hi)}
		return nil
	}
	var err error
	r.cur, err = r.ks.ks.Rows(lo, hi)
	return err
}

// leave ends the current segment.
func (r *segmentedRows) leave() {
	if r.cur != nil {
		r.cur.Tally(&r.n)
		r.cur.Close()
		r.cur = nil
	}
}

// SeekGE makes Next return the first row at or after key.
func (r *segmentedRows) SeekGE(key []byte) error {
	if r.err != nil {
		if r.err == io.EOF {
			return nil
		}
		return r.err
	}
	if r.cur != nil {
		if r.to == nil || r.ks.ks.Comparer().Compare(key, r.to) < 0 {
			return r.cur.SeekGE(key)
		}
		r.leave()
	}
	if !r.ended && (r.lo == nil || r.ks.ks.Comparer().Compare(key, r.lo) > 0) {
		r.lo = append([]byte(nil), key...)
	}
	return nil
}

// Place says where the row last returned stands.
func (r *segmentedRows) Place() record.Place {
	if r.cur == nil {
		return record.Place{Level: -1}
	}
	return r.cur.Place()
}

// Tally hands over the counts.
func (r *segmentedRows) Tally(t *record.Tally) {
	t.Add(&r.n)
	r.n = record.Tally{}
	if r.cur != nil {
		r.cur.Tally(t)
	}
}

// Close releases the files.
func (r *segmentedRows) Close() error {
	r.leave()
	if r.err == nil {
		r.err = io.EOF
	}
	return nil
}

// segmentedEntries yields the entries of one segment after the other.
type segmentedEntries struct {
	segments
	cur store.EntryIterator // nil between segments
	err error
}

// Next returns the next entry.
func (it *segmentedEntries) Next() (*store.Entry, error) {
	for it.err == nil {
		if it.cur == nil {
			lo, hi, i, ok := it.next()
			switch {
			case !ok:
				it.err = io.EOF
				return nil, it.err
			case i < 0:
				if it.cur, it.err = it.ks.ks.Entries(lo, hi); it.err != nil {
					return nil, it.err
				}
			default:
				it.cur = &circleEntries{circleScan: it.ks.scan(i, lo, hi)}
			}
		}
		e, err := it.cur.Next()
		if err == nil {
			return e, nil
		}
		it.cur.Close()
		if it.cur = nil; err != io.EOF {
			it.err = err
		}
	}
	return nil, it.err
}

// Close releases the files.
func (it *segmentedEntries) Close() error {
	if it.cur != nil {
		it.cur.Close()
		it.cur = nil
	}
	if it.err == nil {
		it.err = io.EOF
	}
	return nil
}
