package codec

import (
	"bytes"
	"sync"

	"kvferry/record"
)

// Spans follows the integers of the collections that are being written.
type Spans struct{ m sync.Map } // *record.Header to *Span

// Of returns the state of the record that h describes. A pass uses one header for all batches of all its
// records, in sequence.
func (x *Spans) Of(h *record.Header) *Span {
	v, ok := x.m.Load(h)
	if !ok {
		v, _ = x.m.LoadOrStore(h, new(Span))
	}
	s := v.(*Span)
	if s.typ != h.Type || s.db != h.DB || !bytes.Equal(s.key, h.Key) {
		s.key, s.typ, s.db, s.ints = append(s.key[:0], h.Key...), h.Type, h.DB, IntRange{}
	}
	return s
}

// Span follows the integers of one collection.
type Span struct {
	key  []byte
	typ  record.Type
	db   string
	ints IntRange
}

// Take adds an integer unless that makes the span too wide.
func (s *Span) Take(v int64, limit uint64) bool {
	r := s.ints.With(v)
	if r.Span() >= limit {
		return false
	}
	s.ints = r
	return true
}
