package commands

import (
	"errors"
	"slices"
	"strconv"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// cmdHset is HSET and HMSET.
func cmdHset(s *state.Server, a [][]byte) error {
	if len(a)%2 != 0 {
		return argument.ErrArgs
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

func cmdHsetnx(s *state.Server, a [][]byte) error {
	v, err := s.FindOrMake(a[1], record.Hash)
	if err != nil || v.Has(a[2]) {
		return err
	}
	return cmdHset(s, a)
}

func cmdHincrby(s *state.Server, a [][]byte) error {
	by, err := argument.ParseInt(a[3])
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
		if n, err = argument.ParseInt(f.Value); err != nil {
			return argument.Refuse("ERR hash value is not an integer")
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

// fields parses FIELDS n name … in a[from:], where a name and its values take each arguments. It returns the
// names and all other arguments: options precede FIELDS and, since Redis 8.4, may also follow the names.
func fields(a [][]byte, from, each int) (names, options [][]byte, err error) {
	i := from
	for ; i < len(a) && !argument.Is(a[i], "FIELDS"); i++ {
		if argument.Is(a[i], "EX") || argument.Is(a[i], "PX") || argument.Is(a[i], "EXAT") || argument.Is(a[i], "PXAT") {
			i++ // what follows is a moment, whatever it says
		}
	}
	if i+1 >= len(a) {
		return nil, nil, argument.Refuse("ERR Mandatory argument FIELDS is missing or not at the right position")
	}
	n, err := argument.ParseInt(a[i+1])
	rest := a[i+2:]
	if err != nil || n < 1 || n > int64(len(rest)/each) {
		return nil, nil, argument.Refuse("ERR Parameter `numFields` should match the number of arguments")
	}
	n *= int64(each)
	return rest[:n], slices.Concat(a[from:i], rest[n:]), nil
}

// fieldsAlone is fields for commands without options.
func fieldsAlone(a [][]byte) ([][]byte, error) {
	names, options, err := fields(a, 2, 1)
	if err == nil && len(options) > 0 {
		err = argument.Refuse("ERR Parameter `numFields` should match the number of arguments")
	}
	return names, err
}

// cmdHexpire is HEXPIRE and its kin; unit is the unit of their times, as in SET.
func cmdHexpire(unit string) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		t, err := argument.ParseInt(a[2])
		if err != nil {
			return err
		}
		at, err := moment(s, unit, t)
		if err != nil || at < 0 {
			return errExpire
		}
		names, options, err := fields(a, 3, 1)
		if err != nil {
			return err
		}
		may, err := mayExpire(s, a[0], options)
		if err != nil {
			return err
		}
		return errors.Join(eachField(s, a[1], names, func(f *state.Field) (bool, error) {
			ok := may(f.ExpireMS, at)
			f.ExpireMS = past(at)
			return ok, nil
		}), late(at))
	}
}

// firstLate is the first moment that Redis takes for no expiry of a field; Valkey does.
const firstLate = 1 << 46

// late tells of commands that only Valkey carries out. The log does not say whose it is.
func late(at int64) error {
	if at < firstLate {
		return nil
	}
	return &state.UnsupportedError{Command: "an expiry of fields after the year 4199", Why: "Valkey accepts it, Redis does not", Near: true}
}

// eachField changes those fields of a hash that it has; change reports whether there is anything to write.
func eachField(s *state.Server, key []byte, names [][]byte, change func(*state.Field) (bool, error)) error {
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

func cmdHpersist(s *state.Server, a [][]byte) error {
	names, err := fieldsAlone(a)
	if err != nil {
		return err
	}
	return eachField(s, a[1], names, func(f *state.Field) (bool, error) {
		f.ExpireMS = 0
		return true, nil
	})
}

func cmdHgetdel(s *state.Server, a [][]byte) error {
	names, err := fieldsAlone(a)
	if err != nil {
		return err
	}
	return cmdRemove(record.Hash)(s, append([][]byte{nil, a[1]}, names...))
}

// fieldOptions reads the options of HGETEX and HSETEX, and the fields.
func fieldOptions(s *state.Server, a [][]byte, takes []string, each int) (o setOptions, names [][]byte, err error) {
	names, options, err := fields(a, 2, each)
	if err == nil {
		err = o.read(s, name(a[0]), takes, options)
	}
	if err == nil {
		err = o.moment(s)
	}
	return o, names, err
}

// cmdHgetex is HGETEX, reduced to its change of expiries.
func cmdHgetex(s *state.Server, a [][]byte) error {
	o, names, err := fieldOptions(s, a, getexTakes, 1)
	if err != nil {
		return err
	}
	if o.ttl == "" {
		_, err := s.Find(a[1], record.Hash)
		return err
	}
	return errors.Join(eachField(s, a[1], names, func(f *state.Field) (bool, error) {
		f.ExpireMS = o.expire
		return true, nil
	}), late(o.expire))
}

func cmdHsetex(s *state.Server, a [][]byte) error {
	o, pairs, err := fieldOptions(s, a, hsetexTakes, 2)
	if err != nil {
		return err
	}
	v, err := s.FindOrMake(a[1], record.Hash)
	if err != nil || o.when == "NX" && !v.Empty() || o.when == "XX" && v.Empty() {
		return err
	}
	for j := 0; j < len(pairs) && o.field != ""; j += 2 {
		if v.Has(pairs[j]) == (o.field == "FNX") {
			return nil
		}
	}
	for j := 0; j < len(pairs); j += 2 {
		f := state.Field{ExpireMS: o.expire, Value: pairs[j+1]}
		if o.ttl == "KEEPTTL" {
			old, _ := v.Field(pairs[j])
			f.ExpireMS = old.ExpireMS
		}
		v.SetField(pairs[j], f)
	}
	s.DB.Store(a[1], v)
	return late(o.expire)
}
