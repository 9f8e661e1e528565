package collections

import (
	"bytes"
	"errors"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/command"
)

// combination is a way to combine sets.
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

// set is a set in the order of its members.
type set struct {
	command.Elements
	scored bool
}

// maxSets is the number of sets that are combined at once: each holds a pass.
const maxSets = 32

// combine merges sets by name, in bounded memory, and calls f with the members of the result until f returns false.
func combine(c *command.Call, keys [][]byte, types record.TypeSet, how combination, f func(*merged) bool) (err error) {
	if len(keys) > maxSets {
		return argument.Refuse("ERR kvferry combines up to 32 keys at a time")
	}
	if err := c.TakePasses(len(keys)); err != nil {
		return err
	}
	sets, opened := make([]set, len(keys)), 0
	defer func() {
		for i := range sets {
			if v := sets[i].V; v != nil {
				err = errors.Join(err, v.Close())
			}
		}
		c.GivePasses(len(keys) - opened)
	}()
	for i, key := range keys {
		opened++ // it gives back its pass
		if err := openSet(c, &sets[i], key, types); err != nil {
			return err
		}
	}
	var m merged
	for {
		if more, err := m.next(sets, how); !more || err != nil {
			return err
		}
		switch {
		case how == inter && len(m.from) < len(sets), how == diff && (m.from[0] != 0 || len(m.from) > 1):
		case !f(&m):
			return nil
		}
	}
}

func openSet(c *command.Call, s *set, key []byte, types record.TypeSet) (err error) {
	if s.V, err = c.OpenHeld(key, command.Reading{ByName: true}); s.V == nil || err != nil {
		return err
	}
	if t := s.V.Header().Type; !types.Has(t) {
		return argument.ErrWrongType
	} else if t == record.ZSet {
		s.scored = true
	}
	return nil
}

// next finds the least member. It returns false once no further one can belong to the result.
func (m *merged) next(sets []set, how combination) (bool, error) {
	m.scores, m.from = m.scores[:0], m.from[:0]
	var least []byte
	for i := range sets {
		e, err := sets[i].Head()
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
			least, m.from, m.scores = e.Name, append(m.from[:0], i), append(m.scores[:0], sets[i].value(e))
		case d == 0:
			m.from, m.scores = append(m.from, i), append(m.scores, sets[i].value(e))
		}
	}
	if len(m.from) == 0 {
		return false, nil
	}
	m.name = append(m.name[:0], least...) // heads move on
	for _, i := range m.from {
		sets[i].Skip()
	}
	return true, nil
}

func (s *set) value(e *record.Element) float64 {
	if s.scored {
		return e.Score
	}
	return 1
}
