package compare

import (
	"context"
	"io"

	"kvferry/inspect"
	"kvferry/record"
)

// side reads one of the datasets and buffers a header and a batch of elements.
type side struct {
	r     *record.Walker
	head  *record.Header // nil: next reads the next record
	done  bool
	batch []record.Element
	at, n int
	ended bool // no elements left
}

// openSide opens a database in key order, with elements by name.
func openSide(ctx context.Context, s *inspect.Scan, db string, types record.TypeSet, has bool) (*side, error) {
	out := &side{batch: make([]record.Element, record.BatchLen), done: !has}
	types &= s.Types(db)
	if !has || types == 0 {
		out.done = true
		return out, nil
	}
	r, err := s.OpenSorted(ctx, s.Whole(db, types))
	if err != nil {
		return nil, err
	}
	out.r = record.Walk(s.ByName(r, 8))
	return out, nil
}

// next moves head to the next record. It skips records without elements, which do not exist, except streams.
func (s *side) next() error {
	for s.head == nil && !s.done {
		clear(s.batch[:s.n])
		h, err := s.r.Next()
		if err == io.EOF {
			s.done = true
			return nil
		}
		if err != nil {
			return err
		}
		s.head, s.at, s.n, s.ended = h, 0, 0, false
		if h.Type == record.Stream {
			return nil
		}
		if e, err := s.peek(); err != nil {
			return err
		} else if e == nil {
			s.head = nil
		}
	}
	return nil
}

// peek returns the current element, or nil after the last.
func (s *side) peek() (*record.Element, error) {
	if s.at < s.n {
		return &s.batch[s.at], nil
	}
	if s.ended {
		return nil, nil
	}
	clear(s.batch[:s.n]) // frees the memory that large rows are read into
	n, err := s.r.Read(s.batch)
	if err == io.EOF {
		s.ended = true
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.at, s.n = 0, n
	return &s.batch[0], nil
}

func (s *side) nextRecord() { s.at++ }

func (s *side) first() *record.Header { return s.head }

func (s *side) close() error {
	if s.r == nil {
		return nil
	}
	return s.r.Close()
}
