package state

import (
	"bytes"
	"encoding/binary"

	"kvferry/record"
)

// item is the row of a list's element. Positions have no gaps; what lies outside of them is garbage.
func item(m *meta, i uint64) []byte {
	return binary.BigEndian.AppendUint64(dataKey(m.id), m.head+i)
}

// push adds an element at an end.
func (s *State) push(m *meta, left bool, value []byte) {
	if left {
		m.head--
		s.set(item(m, 0), value)
	} else {
		s.set(item(m, m.count), value)
	}
	m.count++
}

// pop takes an element from an end of a list that is not empty.
func (s *State) pop(m *meta, left bool) []byte {
	m.count--
	if !left {
		v, _ := s.get(item(m, m.count))
		return v
	}
	v, _ := s.get(item(m, 0))
	m.head++
	return v
}

// cmdPush is the family of RPUSH; must says that the list has to be there.
func cmdPush(left, must bool) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		m, err := s.findOrMake(a[1], record.List)
		if err != nil || must && m.count == 0 {
			return err
		}
		for _, v := range a[2:] {
			s.push(m, left, v)
		}
		s.put(a[1], m)
		return nil
	}
}

func cmdPop(left bool) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		n := int64(1)
		if len(a) > 2 {
			var err error
			if n, err = parseInt(a[2]); err != nil || n < 0 {
				return errRange
			}
		}
		m, err := s.findType(a[1], record.List)
		if err != nil || m == nil {
			return err
		}
		k := min(uint64(n), m.count)
		if m.count -= k; left {
			m.head += k
		}
		s.put(a[1], m)
		return nil
	}
}

// index turns an index that may count from the end into one from the start.
func (m *meta) index(b []byte) (uint64, error) {
	i, err := parseInt(b)
	if err != nil {
		return 0, err
	}
	if i < 0 {
		i += int64(m.count)
	}
	if i < 0 || uint64(i) >= m.count {
		return 0, errRange
	}
	return uint64(i), nil
}

func cmdLset(s *State, a [][]byte) error {
	m, err := s.findType(a[1], record.List)
	if err != nil {
		return err
	}
	if m == nil {
		return errNoKey
	}
	i, err := m.index(a[2])
	if err == nil {
		s.set(item(m, i), a[3])
	}
	return err
}

func cmdLtrim(s *State, a [][]byte) error {
	n, err := integers(a[2], a[3])
	if err != nil {
		return err
	}
	m, err := s.findType(a[1], record.List)
	if err != nil || m == nil {
		return err
	}
	from, to := span(n[0], n[1], int64(m.count))
	m.head += uint64(from)
	m.count = uint64(to - from)
	s.put(a[1], m)
	return nil
}

func cmdLinsert(s *State, a [][]byte) error {
	after := is(a[2], "AFTER")
	if !after && !is(a[2], "BEFORE") {
		return errSyntax
	}
	m, err := s.findType(a[1], record.List)
	if err != nil || m == nil {
		return err
	}
	i, found := uint64(0), false
	s.items(m, func(v []byte) bool {
		if found = bytes.Equal(v, a[3]); !found {
			i++
		}
		return !found
	})
	if !found {
		return nil
	}
	if after {
		i++
	}
	s.insert(m, i, a[4])
	s.put(a[1], m)
	return nil
}

// items calls f with the elements in order until it returns false.
func (s *State) items(m *meta, f func(value []byte) bool) {
	n := uint64(0)
	if m.count == 0 {
		return
	}
	s.walk(dataKey(m.id), binary.BigEndian.AppendUint64(nil, m.head), false, func(_, v []byte) bool {
		n++
		return f(v) && n < m.count
	})
}

// insert puts an element at an index, moving those of the shorter side.
func (s *State) insert(m *meta, i uint64, value []byte) {
	if i < m.count-i {
		m.head--
		for j := range i {
			v, _ := s.get(item(m, j+1))
			s.set(item(m, j), v)
		}
	} else {
		for j := m.count; j > i; j-- {
			v, _ := s.get(item(m, j-1))
			s.set(item(m, j), v)
		}
	}
	m.count++
	s.set(item(m, i), value)
}

// cmdLrem writes what stays to a new id: elements behind the first that goes would move anyway.
func cmdLrem(s *State, a [][]byte) error {
	n, err := parseInt(a[2])
	if err != nil {
		return err
	}
	m, err := s.findType(a[1], record.List)
	if err != nil || m == nil {
		return err
	}
	there := uint64(0)
	s.items(m, func(v []byte) bool {
		if bytes.Equal(v, a[3]) {
			there++
		}
		return true
	})
	if there == 0 {
		return nil
	}
	pass, drop := uint64(0), there // how many are kept first, then how many go
	switch {
	case n > 0:
		drop = min(there, uint64(n))
	case n < 0:
		drop = min(there, uint64(-n))
		pass = there - drop
	}
	out := s.fresh(record.List)
	out.expire = m.expire
	s.items(m, func(v []byte) bool {
		if bytes.Equal(v, a[3]) {
			if pass > 0 {
				pass--
			} else if drop > 0 {
				drop--
				return true
			}
		}
		s.push(out, false, v)
		return true
	})
	s.put(a[1], out)
	return nil
}

// move takes an element from an end of one list to an end of another, or of the same.
func (s *State) move(from, to []byte, left, toLeft bool) error {
	src, err := s.findType(from, record.List)
	if err != nil || src == nil {
		return err
	}
	if _, err := s.findType(to, record.List); err != nil {
		return err
	}
	v := s.pop(src, left)
	if bytes.Equal(from, to) {
		s.push(src, toLeft, v)
		s.put(from, src)
		return nil
	}
	dst, err := s.findOrMake(to, record.List)
	if err != nil {
		return err
	}
	s.push(dst, toLeft, v)
	s.put(from, src)
	s.put(to, dst)
	return nil
}

func cmdRpoplpush(s *State, a [][]byte) error { return s.move(a[1], a[2], false, true) }

func cmdLmove(s *State, a [][]byte) error {
	for _, side := range a[3:5] {
		if !is(side, "LEFT") && !is(side, "RIGHT") {
			return errSyntax
		}
	}
	return s.move(a[1], a[2], is(a[3], "LEFT"), is(a[4], "LEFT"))
}
