package command

import (
	"bytes"
	"errors"
	"io"

	"kvferry/internal/shared/argument"
	"kvferry/record"
)

// combination tells how sets are combined.
type combination uint8

const (
	inter combination = iota
	union
	diff
)

// merged is a member of some of the sets being combined.
type merged struct {
	name   []byte
	scores []float64 // of the sets that have it, in their order; 1 for members of a set
	from   []int     // those sets
}

// stream is a set in the order of its members.
type stream struct {
	v     Value
	score bool
	batch [batchLen]record.Element
	at, n int
}

// head returns the current member; nil at the end.
func (s *stream) head() (*record.Element, error) {
	if s.v == nil {
		return nil, nil
	}
	if s.at == s.n {
		n, err := s.v.Read(s.batch[:])
		if s.at, s.n = 0, n; err == io.EOF {
			err = s.v.Close()
			s.v = nil
			return nil, err
		}
		if err != nil {
			return nil, err
		}
	}
	return &s.batch[s.at], nil
}

// maxSets is the number of sets that are combined at once: each holds a pass.
const maxSets = 32

// combine merges sets by name, in bounded memory, and calls f with the members of the result until f returns false.
func (c *Call) combine(keys [][]byte, types record.TypeSet, how combination, f func(*merged) bool) (err error) {
	if len(keys) > maxSets {
		return argument.Refuse("ERR kvferry combines up to 32 keys at a time")
	}
	if err := c.Server.gate.pass(c.Ctx, c.Client, len(keys)); err != nil {
		return err
	}
	streams, opened := make([]stream, len(keys)), 0
	defer func() {
		for i := range streams {
			if v := streams[i].v; v != nil {
				err = errors.Join(err, v.Close())
			}
		}
		c.Server.gate.free(c.Client, len(keys)-opened, 0)
	}()
	for i, key := range keys {
		opened++ // it gives back its pass
		if err := c.openSet(&streams[i], key, types); err != nil {
			return err
		}
	}
	var m merged
	for {
		if more, err := m.next(streams, how); !more || err != nil {
			return err
		}
		switch {
		case how == inter && len(m.from) < len(streams), how == diff && (m.from[0] != 0 || len(m.from) > 1):
		case !f(&m):
			return nil
		}
	}
}

func (c *Call) openSet(s *stream, key []byte, types record.TypeSet) (err error) {
	if s.v, err = c.openHeld(key, Reading{ByName: true}); s.v == nil || err != nil {
		return err
	}
	if t := s.v.Header().Type; !types.Has(t) {
		return argument.ErrWrongType
	} else if t == record.ZSet {
		s.score = true
	}
	return nil
}

// next finds the least member. It returns false once no further one can belong to the result.
func (m *merged) next(streams []stream, how combination) (bool, error) {
	m.scores, m.from = m.scores[:0], m.from[:0]
	var least []byte
	for i := range streams {
		e, err := streams[i].head()
		if err != nil {
			return false, err
		}
		if e == nil {
			if how == inter || how == diff && i == 0 {
				return false, nil
			}
			continue
		}
		switch d := bytes.Compare(e.Name, least); {
		case len(m.from) == 0 || d < 0:
			least, m.from, m.scores = e.Name, append(m.from[:0], i), append(m.scores[:0], streams[i].value(e))
		case d == 0:
			m.from, m.scores = append(m.from, i), append(m.scores, streams[i].value(e))
		}
	}
	if len(m.from) == 0 {
		return false, nil
	}
	m.name = append(m.name[:0], least...) // heads move on
	for _, i := range m.from {
		streams[i].at++
	}
	return true, nil
}

func (s *stream) value(e *record.Element) float64 {
	if s.score {
		return e.Score
	}
	return 1
}
