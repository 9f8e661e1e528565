package dataset

import (
	"bytes"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// Slots describes a keyspace whose keys ascend by the slot of the user key, as in a cluster: a span of user keys is a
// range of rows in each slot.
type Slots struct {
	Head     int    // bytes of a raw key before the user key
	From, To []byte // raw keys of the keyspace; nil is open
	// User returns the user key of a raw key of at least Head bytes; leap is false if later rows of its slot may have
	// smaller user keys. nil: the user key is the rest after Head, and leap is true.
	User func(raw []byte) (user []byte, leap bool)
	// One returns the raw range of a single user key, whose slot is known.
	One func(key []byte) (lo, hi []byte)
}

// Open opens the rows of a span. The iterator seeks from slot to slot.
func (s *Slots) Open(ks store.Keyspace, span format.Span) (store.Iterator, error) {
	if key, ok := span.Key(); ok {
		return ks.Rows(s.One(key))
	}
	it, err := ks.Rows(s.From, s.To)
	if err != nil || span.Lo == nil && span.Hi == nil {
		return it, err
	}
	return &slotRows{Iterator: it, Slots: *s, span: span}, nil
}

// slotRows yields the rows whose user key is in a span.
type slotRows struct {
	store.Iterator
	Slots
	span format.Span
	to   []byte
	own  record.Tally // counts of skipped rows within the span
}

// Next returns the next row of the span. A row too short for a user key belongs to the first span.
func (s *slotRows) Next() (key, value []byte, err error) {
	for {
		key, value, err = s.Iterator.Next()
		if err != nil {
			return nil, nil, err
		}
		if s.inside(key) {
			s.Iterator.Tally(&s.own)
			return key, value, nil
		}
		s.Iterator.Tally(new(record.Tally)) // another span counts it
		if s.to == nil {
			continue
		}
		if bytes.Compare(s.to, key) > 0 {
			if err := s.Iterator.SeekGE(s.to); err != nil {
				return nil, nil, err
			}
		}
	}
}

// inside reports whether a row is in the span; otherwise it sets to, a lower bound of the next such row; nil: no bound.
func (s *slotRows) inside(raw []byte) bool {
	s.to = s.to[:0]
	if len(raw) < s.Head {
		s.to = nil
		return s.span.Lo == nil
	}
	user, leap := raw[s.Head:], true
	if s.User != nil {
		user, leap = s.User(raw)
	}
	switch {
	case s.span.Lo != nil && bytes.Compare(user, s.span.Lo) < 0:
		s.to = append(append(s.to, raw[:s.Head]...), s.span.Lo...)
	case s.span.Hi != nil && bytes.Compare(user, s.span.Hi) >= 0:
		s.to, _ = store.Successor(raw[:s.Head])
	default:
		return true
	}
	if !leap {
		s.to = nil
	}
	return false
}

// Tally adds the counts of the span to t.
func (s *slotRows) Tally(t *record.Tally) {
	t.Add(&s.own)
	s.own = record.Tally{}
}
