package commands

import (
	"math"
	"strconv"

	"kvferry/record"
	"kvferry/redis/state/server"
)

// maxString is the longest string that a server makes of shorter ones.
const maxString = 512 << 20

var (
	errTooLong = server.Refuse("ERR string exceeds maximum allowed size")
	errExpire  = server.Refuse("ERR invalid expire time")
)

// setOptions are those of SET and of HSETEX.
type setOptions struct {
	nx, xx, keep bool
	get          bool
	expire       int64
	equal        []byte // of IFEQ, nil without
}

// option reads one option of SET at args[i] and returns where the next is.
func (o *setOptions) option(s *server.Server, args [][]byte, i int) (int, error) {
	switch {
	case server.Is(args[i], "NX"):
		o.nx = true
	case server.Is(args[i], "XX"):
		o.xx = true
	case server.Is(args[i], "GET"):
		o.get = true
	case server.Is(args[i], "KEEPTTL"):
		o.keep = true
	case server.Is(args[i], "IFEQ") && i+1 < len(args):
		o.equal = append([]byte{}, args[i+1]...)
		return i + 2, nil
	case expiryUnits[string(s.Upper(args[i]))] != 0 && i+1 < len(args):
		t, err := server.ParseInt(args[i+1])
		if err != nil {
			return 0, err
		}
		if t <= 0 {
			return 0, errExpire
		}
		if o.expire, err = moment(s, string(s.Upper(args[i])), t); err != nil {
			return 0, err
		}
		return i + 2, nil
	default:
		return 0, server.Unsupported("SET "+string(s.Upper(args[i])), "kvferry does not know this option")
	}
	return i + 1, nil
}

// expiryUnits are the ways to say when a key expires: how many ms a unit has, negative when it counts from now.
var expiryUnits = map[string]int64{"EX": -1000, "PX": -1, "EXAT": 1000, "PXAT": 1}

// moment turns the time of EX, PX, EXAT or PXAT into Unix ms.
func moment(s *server.Server, unit string, t int64) (int64, error) {
	ms := expiryUnits[unit]
	base := int64(0)
	if ms < 0 {
		ms, base = -ms, s.Now
	}
	if t > math.MaxInt64/ms || t < math.MinInt64/ms || base > 0 && t*ms > math.MaxInt64-base {
		return 0, errExpire
	}
	return t*ms + base, nil
}

func cmdSet(s *server.Server, a [][]byte) error {
	var o setOptions
	var err error
	for i := 3; i < len(a); {
		if i, err = o.option(s, a, i); err != nil {
			return err
		}
	}
	if o.nx || o.xx || o.keep || o.get || o.equal != nil {
		old := s.DB.Find(a[1])
		if o.get && old != nil && old.Type != record.String {
			return server.ErrWrongType
		}
		if o.nx && old != nil || o.xx && old == nil {
			return nil
		}
		if o.equal != nil && (old == nil || old.Type != record.String || string(old.Content()) != string(o.equal)) {
			return nil
		}
		if o.keep && old != nil {
			o.expire = old.ExpireMS
		}
	}
	s.DB.SetString(a[1], a[2], o.expire)
	return nil
}

// cmdSetex is SETEX and PSETEX.
func cmdSetex(unit string) func(*server.Server, [][]byte) error {
	return func(s *server.Server, a [][]byte) error {
		t, err := server.ParseInt(a[2])
		if err != nil {
			return err
		}
		if t <= 0 {
			return errExpire
		}
		at, err := moment(s, unit, t)
		if err == nil {
			s.DB.SetString(a[1], a[3], at)
		}
		return err
	}
}

func cmdSetnx(s *server.Server, a [][]byte) error {
	if s.DB.Find(a[1]) == nil {
		s.DB.SetString(a[1], a[2], 0)
	}
	return nil
}

func cmdGetset(s *server.Server, a [][]byte) error {
	if _, err := s.Find(a[1], record.String); err != nil {
		return err
	}
	s.DB.SetString(a[1], a[2], 0)
	return nil
}

func cmdMset(s *server.Server, a [][]byte) error {
	if len(a)%2 != 1 {
		return server.ErrArgs
	}
	for i := 1; i < len(a); i += 2 {
		s.DB.SetString(a[i], a[i+1], 0)
	}
	return nil
}

func cmdMsetnx(s *server.Server, a [][]byte) error {
	if len(a)%2 != 1 {
		return server.ErrArgs
	}
	for i := 1; i < len(a); i += 2 {
		if s.DB.Find(a[i]) != nil {
			return nil
		}
	}
	return cmdMset(s, a)
}

func cmdAppend(s *server.Server, a [][]byte) error {
	v, err := s.Find(a[1], record.String)
	if err != nil {
		return err
	}
	if v == nil {
		s.DB.SetString(a[1], a[2], 0)
		return nil
	}
	if v.Len()+int64(len(a[2])) > maxString {
		return errTooLong
	}
	v.SetBytes(v.Len(), a[2])
	s.DB.Store(a[1], v)
	return nil
}

func cmdSetrange(s *server.Server, a [][]byte) error {
	off, err := server.ParseInt(a[2])
	if err != nil {
		return err
	}
	if off < 0 {
		return server.ErrRange
	}
	v, err := s.FindOrMake(a[1], record.String)
	if err != nil || len(a[3]) == 0 {
		return err
	}
	if off > maxString-int64(len(a[3])) {
		return errTooLong
	}
	v.SetBytes(off, a[3])
	s.DB.Store(a[1], v)
	return nil
}

// cmdIncr is INCR and DECR, or INCRBY and DECRBY when the number is an argument.
func cmdIncr(sign int64) func(*server.Server, [][]byte) error {
	return func(s *server.Server, a [][]byte) error {
		by := int64(1)
		if len(a) > 2 {
			var err error
			if by, err = server.ParseInt(a[2]); err != nil {
				return err
			}
		}
		if sign < 0 && by == math.MinInt64 {
			return server.Refuse("ERR decrement would overflow")
		}
		v, err := s.Find(a[1], record.String)
		if err != nil {
			return err
		}
		n, expire := int64(0), int64(0)
		if v != nil {
			if v.Len() > 20 {
				return server.ErrInteger
			}
			if n, err = server.ParseInt(v.Content()); err != nil {
				return err
			}
			expire = v.ExpireMS
		}
		if n, err = add(n, sign*by); err != nil {
			return err
		}
		s.DB.SetString(a[1], strconv.AppendInt(nil, n, 10), expire)
		return nil
	}
}

func add(a, b int64) (int64, error) {
	if a < 0 && b < math.MinInt64-a && b < 0 || a > 0 && b > 0 && b > math.MaxInt64-a {
		return 0, server.Refuse("ERR increment or decrement would overflow")
	}
	return a + b, nil
}
