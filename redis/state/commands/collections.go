package commands

import (
	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// cmdRemove is SREM, HDEL and ZREM.
func cmdRemove(t record.Type) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		v, err := s.Find(a[1], t)
		if err != nil || v == nil {
			return err
		}
		for _, name := range a[2:] {
			v.Remove(name)
		}
		s.DB.Store(a[1], v)
		return nil
	}
}

// popped returns the number of elements that a command pops: an argument, or one.
func popped(a [][]byte) (int64, error) {
	switch {
	case len(a) == 2:
		return 1, nil
	case len(a) > 3:
		return 0, argument.ErrArgs
	}
	n, err := argument.ParseInt(a[2])
	if err != nil || n < 0 {
		return 0, argument.ErrRange
	}
	return n, nil
}

// ranks returns the value of a key, nil if it does not exist, and the range from <= i < to of its elements
// that the ranks a[2] and a[3] select.
func ranks(s *state.Server, a [][]byte, t record.Type) (v *state.Value, from, to int64, err error) {
	n, err := argument.ParseInts(a[2], a[3])
	if err != nil {
		return nil, 0, 0, err
	}
	if v, err = s.Find(a[1], t); v != nil {
		from, to = argument.Span(n[0], n[1], v.Len())
	}
	return v, from, to, err
}
