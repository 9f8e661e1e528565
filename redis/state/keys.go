package state

import (
	"math"

	"kvferry/record"
)

// nothing is for commands that change no data.
func nothing(*State, [][]byte) error { return nil }

func cmdSelect(s *State, a [][]byte) error {
	n, err := database(a[1])
	if err == nil {
		s.Select(n)
	}
	return err
}

// database reads the number of a database.
func database(b []byte) (int, error) {
	n, err := parseInt(b)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, &ReplyError{"ERR DB index is out of range"}
	}
	return int(n), nil
}

func cmdDel(s *State, a [][]byte) error {
	for _, key := range a[1:] {
		s.remove(key)
	}
	return nil
}

func cmdGetdel(s *State, a [][]byte) error {
	if _, err := s.findType(a[1], record.String); err != nil {
		return err
	}
	return cmdDel(s, a[:2])
}

func cmdFlushDB(s *State, _ [][]byte) error {
	delete(s.spaces, s.current)
	return nil
}

func cmdFlushAll(s *State, _ [][]byte) error {
	clear(s.spaces)
	return nil
}

func cmdSwapDB(s *State, a [][]byte) error {
	x, err := database(a[1])
	if err != nil {
		return err
	}
	y, err := database(a[2])
	if err != nil {
		return err
	}
	sx, sy := s.space(x), s.space(y)
	s.spaces[x], s.spaces[y] = sy, sx
	return nil
}

// cmdExpire is the family of EXPIRE, whose times are in a unit of SET.
func cmdExpire(unit string) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		t, err := parseInt(a[2])
		if err != nil {
			return err
		}
		at, err := s.moment(unit, t)
		if err != nil {
			return err
		}
		m := s.find(a[1])
		if m == nil {
			return nil
		}
		ok, err := mayExpire(a[3:], m.expire, at)
		if err != nil || !ok {
			return err
		}
		m.expire = past(at)
		s.put(a[1], m)
		return nil
	}
}

// past is a moment that is kept as an expiry, where 0 means never: one before 1970 has come anyway.
func past(at int64) int64 { return max(at, 1) }

// mayExpire reports whether the conditions NX, XX, GT and LT let an expiry be changed from was to at.
func mayExpire(conditions [][]byte, was, at int64) (bool, error) {
	ok := true
	for _, c := range conditions {
		switch {
		case is(c, "NX"):
			ok = ok && was == 0
		case is(c, "XX"):
			ok = ok && was != 0
		case is(c, "GT"):
			ok = ok && was != 0 && at > was
		case is(c, "LT"):
			ok = ok && (was == 0 || at < was)
		default:
			return false, &ReplyError{"ERR Unsupported option"}
		}
	}
	return ok, nil
}

func cmdPersist(s *State, a [][]byte) error {
	if m := s.find(a[1]); m != nil && m.expire != 0 {
		m.expire = 0
		s.put(a[1], m)
	}
	return nil
}

// cmdGetex is GETEX, of which only the change of the expiry matters.
func cmdGetex(s *State, a [][]byte) error {
	m, err := s.findType(a[1], record.String)
	if err != nil || m == nil || len(a) == 2 {
		return err
	}
	if is(a[2], "PERSIST") {
		return cmdPersist(s, a)
	}
	var o setOptions
	if _, err := o.option(s, a, 2); err != nil {
		return err
	}
	m.expire = o.expire
	s.put(a[1], m)
	return nil
}

// cmdRename is RENAME and RENAMENX.
func cmdRename(nx bool) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		m := s.find(a[1])
		if m == nil {
			return errNoKey
		}
		if string(a[1]) == string(a[2]) || nx && s.find(a[2]) != nil {
			return nil
		}
		s.remove(a[1])
		s.put(a[2], m)
		return nil
	}
}

func cmdMove(s *State, a [][]byte) error {
	db, err := database(a[2])
	if err != nil {
		return err
	}
	if db == s.current {
		return &ReplyError{"ERR source and destination objects are the same"}
	}
	m := s.find(a[1])
	if m == nil || s.findIn(db, a[1]) != nil {
		return nil
	}
	s.putIn(db, a[1], m)
	s.remove(a[1])
	return nil
}

func cmdCopy(s *State, a [][]byte) error {
	db, replace := s.current, false
	for i := 3; i < len(a); i++ {
		switch {
		case is(a[i], "REPLACE"):
			replace = true
		case is(a[i], "DB") && i+1 < len(a):
			var err error
			if db, err = database(a[i+1]); err != nil {
				return err
			}
			i++
		default:
			return errSyntax
		}
	}
	if db == s.current && string(a[1]) == string(a[2]) {
		return &ReplyError{"ERR source and destination objects are the same"}
	}
	m := s.find(a[1])
	if m == nil || !replace && s.findIn(db, a[2]) != nil {
		return nil
	}
	if !m.inline {
		m = s.copyRows(m)
	}
	s.putIn(db, a[2], m)
	return nil
}

// copyRows returns a key like m with rows of its own.
func (s *State) copyRows(m *meta) *meta {
	c := *m
	c.id = s.nextID
	s.nextID++
	s.scan(dataKey(m.id), func(key, value []byte) bool {
		s.set(dataKey(c.id, key), value)
		return s.err == nil
	})
	return &c
}
