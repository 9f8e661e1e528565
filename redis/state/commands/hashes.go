package commands

import (
	"math"
	"strconv"

	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

// cmdHset is HSET and HMSET.
func cmdHset(s *server.Server, a [][]byte) error {
	if len(a)%2 != 0 {
		return server.ErrArgs
	}
	v, err := s.FindOrMake(a[1], record.Hash)
	if err != nil {
		return err
	}
	for i := 2; i < len(a); i += 2 {
		v.SetField(a[i], state.Field{Value: a[i+1]})
	}
	s.DB.Store(a[1], v)
	return nil
}

func cmdHsetnx(s *server.Server, a [][]byte) error {
	v, err := s.FindOrMake(a[1], record.Hash)
	if err != nil || v.Has(a[2]) {
		return err
	}
	return cmdHset(s, a)
}

func cmdHincrby(s *server.Server, a [][]byte) error {
	by, err := server.ParseInt(a[3])
	if err != nil {
		return err
	}
	v, err := s.FindOrMake(a[1], record.Hash)
	if err != nil {
		return err
	}
	f, ok := v.Field(a[2])
	n := int64(0)
	if ok {
		if n, err = server.ParseInt(f.Value); err != nil {
			return server.Refuse("ERR hash value is not an integer")
		}
	}
	if n, err = add(n, by); err != nil {
		return err
	}
	f.Value = strconv.AppendInt(nil, n, 10)
	v.SetField(a[2], f)
	s.DB.Store(a[1], v)
	return nil
}

// fields reads FIELDS n name … at a[i:], with so many words for each, and returns the names.
func fields(a [][]byte, i, each int) ([][]byte, error) {
	if i+1 >= len(a) || !server.Is(a[i], "FIELDS") {
		return nil, server.Refuse("ERR Mandatory argument FIELDS is missing or not at the right position")
	}
	n, err := server.ParseInt(a[i+1])
	names := a[i+2:]
	if err != nil || n < 1 || n > math.MaxInt32 || int(n)*each != len(names) {
		return nil, server.Refuse("ERR Parameter `numFields` should match the number of arguments")
	}
	return names, nil
}

// cmdHexpire is the family of HEXPIRE, whose times are in a unit of SET.
func cmdHexpire(unit string) func(*server.Server, [][]byte) error {
	return func(s *server.Server, a [][]byte) error {
		t, err := server.ParseInt(a[2])
		if err != nil {
			return err
		}
		at, err := moment(s, unit, t)
		if err != nil || at < 0 {
			return errExpire
		}
		i := 3
		for i < len(a) && !server.Is(a[i], "FIELDS") {
			i++
		}
		names, err := fields(a, i, 1)
		if err != nil {
			return err
		}
		return eachField(s, a[1], names, func(f *state.Field) (bool, error) {
			ok, err := mayExpire(a[3:i], f.ExpireMS, at)
			f.ExpireMS = past(at)
			return ok, err
		})
	}
}

// eachField changes those fields of a hash that it has; change reports whether there is anything to write.
func eachField(s *server.Server, key []byte, names [][]byte, change func(*state.Field) (bool, error)) error {
	v, err := s.Find(key, record.Hash)
	if err != nil || v == nil {
		return err
	}
	for _, name := range names {
		if err := v.ChangeField(name, change); err != nil {
			return err
		}
	}
	return nil
}

func cmdHpersist(s *server.Server, a [][]byte) error {
	names, err := fields(a, 2, 1)
	if err != nil {
		return err
	}
	return eachField(s, a[1], names, func(f *state.Field) (bool, error) {
		f.ExpireMS = 0
		return true, nil
	})
}

func cmdHgetdel(s *server.Server, a [][]byte) error {
	names, err := fields(a, 2, 1)
	if err != nil {
		return err
	}
	return cmdRemove(record.Hash)(s, append([][]byte{nil, a[1]}, names...))
}

// cmdHgetex is HGETEX, of which only the change of the expiries matters.
func cmdHgetex(s *server.Server, a [][]byte) error {
	var o setOptions
	i := 2
	for i < len(a) && !server.Is(a[i], "FIELDS") {
		var err error
		if server.Is(a[i], "PERSIST") {
			i++
		} else if i, err = o.option(s, a, i); err != nil {
			return err
		}
	}
	names, err := fields(a, i, 1)
	if err != nil || i == 2 {
		return err
	}
	return eachField(s, a[1], names, func(f *state.Field) (bool, error) {
		f.ExpireMS = o.expire
		return true, nil
	})
}

func cmdHsetex(s *server.Server, a [][]byte) error {
	var o setOptions
	var fnx, fxx bool
	i := 2
	for i < len(a) && !server.Is(a[i], "FIELDS") {
		var err error
		switch {
		case server.Is(a[i], "FNX"):
			fnx = true
			i++
		case server.Is(a[i], "FXX"):
			fxx = true
			i++
		default:
			if i, err = o.option(s, a, i); err != nil {
				return err
			}
		}
	}
	pairs, err := fields(a, i, 2)
	if err != nil {
		return err
	}
	v, err := s.FindOrMake(a[1], record.Hash)
	if err != nil || o.nx && !v.Empty() || o.xx && v.Empty() {
		return err
	}
	for j := 0; j < len(pairs) && (fnx || fxx); j += 2 {
		if v.Has(pairs[j]) == fnx {
			return nil
		}
	}
	for j := 0; j < len(pairs); j += 2 {
		f := state.Field{ExpireMS: o.expire, Value: pairs[j+1]}
		if o.keep {
			old, _ := v.Field(pairs[j])
			f.ExpireMS = old.ExpireMS
		}
		v.SetField(pairs[j], f)
	}
	s.DB.Store(a[1], v)
	return nil
}
