package commands

import (
	"math"

	"kvferry/record"
	"kvferry/redis/state/server"
)

// nothing is for commands that change no data.
func nothing(*server.Server, [][]byte) error { return nil }

func cmdSelect(s *server.Server, a [][]byte) error {
	n, err := database(a[1])
	if err == nil {
		s.DB.Select(n)
	}
	return err
}

// database reads the number of a database.
func database(b []byte) (int, error) {
	n, err := server.ParseInt(b)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, server.Refuse("ERR DB index is out of range")
	}
	return int(n), nil
}

func cmdDel(s *server.Server, a [][]byte) error {
	for _, key := range a[1:] {
		s.DB.Remove(key)
	}
	return nil
}

func cmdGetdel(s *server.Server, a [][]byte) error {
	if _, err := s.Find(a[1], record.String); err != nil {
		return err
	}
	return cmdDel(s, a[:2])
}

func cmdFlushDB(s *server.Server, _ [][]byte) error {
	s.DB.Flush()
	return nil
}

func cmdFlushAll(s *server.Server, _ [][]byte) error {
	s.DB.FlushAll()
	return nil
}

func cmdSwapDB(s *server.Server, a [][]byte) error {
	x, err := database(a[1])
	if err != nil {
		return err
	}
	y, err := database(a[2])
	if err != nil {
		return err
	}
	s.DB.Swap(x, y)
	return nil
}

// cmdExpire is the family of EXPIRE, whose times are in a unit of SET.
func cmdExpire(unit string) func(*server.Server, [][]byte) error {
	return func(s *server.Server, a [][]byte) error {
		t, err := server.ParseInt(a[2])
		if err != nil {
			return err
		}
		at, err := moment(s, unit, t)
		if err != nil {
			return err
		}
		v := s.DB.Find(a[1])
		if v == nil {
			return nil
		}
		ok, err := mayExpire(a[3:], v.ExpireMS, at)
		if err != nil || !ok {
			return err
		}
		v.ExpireMS = past(at)
		s.DB.Store(a[1], v)
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
		case server.Is(c, "NX"):
			ok = ok && was == 0
		case server.Is(c, "XX"):
			ok = ok && was != 0
		case server.Is(c, "GT"):
			ok = ok && was != 0 && at > was
		case server.Is(c, "LT"):
			ok = ok && (was == 0 || at < was)
		default:
			return false, server.Refuse("ERR Unsupported option")
		}
	}
	return ok, nil
}

func cmdPersist(s *server.Server, a [][]byte) error {
	if v := s.DB.Find(a[1]); v != nil && v.ExpireMS != 0 {
		v.ExpireMS = 0
		s.DB.Store(a[1], v)
	}
	return nil
}

// cmdGetex is GETEX, of which only the change of the expiry matters.
func cmdGetex(s *server.Server, a [][]byte) error {
	v, err := s.Find(a[1], record.String)
	if err != nil || v == nil || len(a) == 2 {
		return err
	}
	if server.Is(a[2], "PERSIST") {
		return cmdPersist(s, a)
	}
	var o setOptions
	if _, err := o.option(s, a, 2); err != nil {
		return err
	}
	v.ExpireMS = o.expire
	s.DB.Store(a[1], v)
	return nil
}

// cmdRename is RENAME and RENAMENX.
func cmdRename(nx bool) func(*server.Server, [][]byte) error {
	return func(s *server.Server, a [][]byte) error {
		v := s.DB.Find(a[1])
		if v == nil {
			return server.ErrNoKey
		}
		if string(a[1]) == string(a[2]) || nx && s.DB.Find(a[2]) != nil {
			return nil
		}
		s.DB.Remove(a[1])
		s.DB.Store(a[2], v)
		return nil
	}
}

func cmdMove(s *server.Server, a [][]byte) error {
	db, err := database(a[2])
	if err != nil {
		return err
	}
	if db == s.DB.Selected() {
		return server.Refuse("ERR source and destination objects are the same")
	}
	v := s.DB.Find(a[1])
	if v == nil || s.DB.FindIn(db, a[1]) != nil {
		return nil
	}
	s.DB.StoreIn(db, a[1], v)
	s.DB.Remove(a[1])
	return nil
}

func cmdCopy(s *server.Server, a [][]byte) error {
	db, replace := s.DB.Selected(), false
	for i := 3; i < len(a); i++ {
		switch {
		case server.Is(a[i], "REPLACE"):
			replace = true
		case server.Is(a[i], "DB") && i+1 < len(a):
			var err error
			if db, err = database(a[i+1]); err != nil {
				return err
			}
			i++
		default:
			return server.ErrSyntax
		}
	}
	if db == s.DB.Selected() && string(a[1]) == string(a[2]) {
		return server.Refuse("ERR source and destination objects are the same")
	}
	v := s.DB.Find(a[1])
	if v == nil || !replace && s.DB.FindIn(db, a[2]) != nil {
		return nil
	}
	s.DB.StoreIn(db, a[2], v.Copy())
	return nil
}
