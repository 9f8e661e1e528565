package commands

import (
	"math"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// refused is for commands that a server always refuses in a log.
func refused(text string) func(*state.Server, [][]byte) error {
	return func(*state.Server, [][]byte) error { return argument.Refuse(text) }
}

func cmdSelect(s *state.Server, a [][]byte) error {
	n, err := database(a[1])
	if err == nil {
		s.DB.Select(n)
	}
	return err
}

// database reads the number of a database.
func database(b []byte) (int, error) {
	n, err := argument.ParseInt(b)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, argument.Refuse("ERR DB index is out of range")
	}
	return int(n), nil
}

func cmdDel(s *state.Server, a [][]byte) error {
	for _, key := range a[1:] {
		s.DB.Remove(key)
	}
	return nil
}

func cmdGetdel(s *state.Server, a [][]byte) error {
	if _, err := s.Find(a[1], record.String); err != nil {
		return err
	}
	return cmdDel(s, a[:2])
}

// cmdFlush is FLUSHDB and FLUSHALL.
func cmdFlush(all bool) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		if err := flushing(s, a[0], a[1:]); err != nil {
			return err
		}
		if all {
			s.DB.FlushAll()
		} else {
			s.DB.Flush()
		}
		for name := range s.Imports {
			s.EndImport(name, true)
		}
		return nil
	}
}

// flushing parses ASYNC or SYNC, which have no effect here.
func flushing(s *state.Server, command []byte, options [][]byte) error {
	switch {
	case len(options) > 1:
		return argument.ErrSyntax
	case len(options) == 1 && !argument.Is(options[0], "ASYNC") && !argument.Is(options[0], "SYNC"):
		return s.Option(name(command), options[0])
	}
	return nil
}

func cmdSwapDB(s *state.Server, a [][]byte) error {
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

// cmdExpire is EXPIRE and its kin; unit is the unit of their times, as in SET.
func cmdExpire(unit string) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		t, err := argument.ParseInt(a[2])
		if err != nil {
			return err
		}
		at, err := moment(s, unit, t)
		if err != nil {
			return err
		}
		may, err := mayExpire(s, a[0], a[3:])
		if err != nil {
			return err
		}
		v := s.DB.Find(a[1])
		if v == nil || !may(v.ExpireMS, at) {
			return nil
		}
		v.ExpireMS = past(at)
		s.DB.Store(a[1], v)
		return nil
	}
}

// past adapts a moment stored as an expiry, where 0 means never: a moment before 1970 becomes 1, as it has
// passed anyway.
func past(at int64) int64 { return max(at, 1) }

// conditions are the options on which EXPIRE and ZADD depend.
type conditions struct{ nx, xx, gt, lt bool }

// set sets the condition that a word names, and reports whether there is one.
func (c *conditions) set(word []byte) bool {
	flag := map[string]*bool{"NX": &c.nx, "XX": &c.xx, "GT": &c.gt, "LT": &c.lt}[name(word)]
	if flag != nil {
		*flag = true
	}
	return flag != nil
}

// clash reports whether the conditions exclude each other.
func (c *conditions) clash() bool { return c.nx && (c.xx || c.gt || c.lt) || c.gt && c.lt }

// mayExpire returns a function that reports whether the options let an expiry replace another one, which is 0 if there is none.
func mayExpire(s *state.Server, command []byte, a [][]byte) (func(was, at int64) bool, error) {
	var c conditions
	for _, word := range a {
		if !c.set(word) {
			return nil, s.Option(name(command), word)
		}
	}
	if c.clash() {
		return nil, argument.Refuse("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	return func(was, at int64) bool {
		return (!c.nx || was == 0) && (!c.xx || was != 0) && (!c.gt || was != 0 && at > was) && (!c.lt || was == 0 || at < was)
	}, nil
}

func cmdPersist(s *state.Server, a [][]byte) error {
	if v := s.DB.Find(a[1]); v != nil && v.ExpireMS != 0 {
		v.ExpireMS = 0
		s.DB.Store(a[1], v)
	}
	return nil
}

// cmdGetex is GETEX, reduced to its change of the expiry.
func cmdGetex(s *state.Server, a [][]byte) error {
	var o setOptions
	if err := o.read(s, "GETEX", getexTakes, a[2:]); err != nil {
		return err
	}
	v, err := s.Find(a[1], record.String)
	if err != nil || v == nil || o.ttl == "" {
		return err
	}
	if err := o.moment(s); err != nil {
		return err
	}
	v.ExpireMS = o.expire
	s.DB.Store(a[1], v)
	return nil
}

// cmdRename is RENAME and RENAMENX.
func cmdRename(nx bool) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		v := s.DB.Find(a[1])
		if v == nil {
			return argument.ErrNoKey
		}
		if string(a[1]) == string(a[2]) || nx && s.DB.Find(a[2]) != nil {
			return nil
		}
		s.DB.Remove(a[1])
		s.DB.Store(a[2], v)
		return nil
	}
}

func cmdMove(s *state.Server, a [][]byte) error {
	db, err := database(a[2])
	if err != nil {
		return err
	}
	for _, option := range a[3:] {
		if !argument.Is(option, "REPLACE") {
			return s.Option("MOVE", option)
		}
	}
	if db == s.DB.Selected() {
		return argument.Refuse("ERR source and destination objects are the same")
	}
	v := s.DB.Find(a[1])
	if v == nil || len(a) == 3 && s.DB.FindIn(db, a[1]) != nil {
		return nil
	}
	s.DB.StoreIn(db, a[1], v)
	s.DB.Remove(a[1])
	return nil
}

// copying holds the options of COPY.
type copying struct {
	db      int
	replace bool
}

func readCopy(s *state.Server, a [][]byte) (o copying, err error) {
	o.db = s.DB.Selected()
	for i := 3; i < len(a); i++ {
		switch {
		case argument.Is(a[i], "REPLACE"):
			o.replace = true
		case argument.Is(a[i], "DB") && i+1 < len(a):
			i++
			if o.db, err = database(a[i]); err != nil {
				return o, err
			}
		default:
			return o, s.Option("COPY", a[i])
		}
	}
	return o, nil
}

func cmdCopy(s *state.Server, a [][]byte) error {
	o, err := readCopy(s, a)
	if err != nil {
		return err
	}
	if o.db == s.DB.Selected() && string(a[1]) == string(a[2]) {
		return argument.Refuse("ERR source and destination objects are the same")
	}
	v := s.DB.Find(a[1])
	if v == nil || !o.replace && s.DB.FindIn(o.db, a[2]) != nil {
		return nil
	}
	s.DB.StoreIn(o.db, a[2], v.Copy())
	return nil
}
