package keylanes

import (
	"bytes"
	"container/heap"
)

// firsts are the lanes of a set in the order of the user keys that come next in them; lanes at their end come last.
type firsts []*cursor

func (f firsts) Len() int { return len(f) }

func (f firsts) Less(i, j int) bool {
	if f[i].done || f[j].done {
		return !f[i].done
	}
	return bytes.Compare(f[i].next, f[j].next) < 0
}

func (f firsts) Swap(i, j int) {
	f[i], f[j] = f[j], f[i]
	f[i].rank, f[j].rank = i, j
}

func (f *firsts) Push(c any) { *f = append(*f, c.(*cursor)) }
func (f *firsts) Pop() any   { panic("lanes stay") }

// First returns the smallest user key that has well-formed rows which were not handed out; ok is false if none is left. A
// key has all its rows in one lane, so only lanes that were asked for since the last call are looked at again. The key is
// valid until the next call of First.
func (s *Set) First() (key []byte, ok bool, err error) {
	s.cur = nil
	if s.firsts == nil {
		s.firsts = make(firsts, len(s.cursors))
		for i := range s.cursors {
			c := &s.cursors[i]
			s.firsts[i], c.rank = c, i
			if err := s.findFirst(c); err != nil {
				return nil, false, err
			}
		}
		heap.Init(&s.firsts)
	}
	for _, c := range s.asked {
		if err := s.findFirst(c); err != nil {
			return nil, false, err
		}
		heap.Fix(&s.firsts, c.rank)
	}
	s.asked = s.asked[:0]
	if len(s.firsts) == 0 || s.firsts[0].done {
		return nil, false, nil
	}
	return s.firsts[0].next, true, nil
}

// findFirst finds the user key that comes next in a lane.
func (s *Set) findFirst(c *cursor) error {
	if c.done {
		return nil
	}
	if err := s.ready(c); err != nil {
		return err
	}
	for !c.done && len(c.row.Key) < c.min {
		if err := s.skip(c); err != nil {
			return err
		}
	}
	if !c.done {
		from := len(c.prefix)
		c.next = append(c.next[:0], c.row.Key[from:from+c.klen]...)
		c.release()
	}
	return nil
}
