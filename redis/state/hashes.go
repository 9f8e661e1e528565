package state

import (
	"encoding/binary"
	"math"
	"strconv"

	"kvferry/record"
)

// field is the value of a hash's field.
type field struct {
	expire int64
	value  []byte
}

func (s *State) field(m *meta, name []byte) (field, bool) {
	b, ok := s.get(dataKey(m.id, name))
	if !ok {
		return field{}, false
	}
	return decodeField(b), true
}

func decodeField(b []byte) field {
	return field{int64(binary.LittleEndian.Uint64(b)), b[8:]}
}

func (s *State) putField(m *meta, name []byte, f field) {
	key := dataKey(m.id, name)
	if 8+len(f.value) > pieceBytes {
		s.dropPieces(key)
		s.setLarge(key, binary.LittleEndian.AppendUint64(nil, uint64(f.expire)), f.value)
		return
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(f.value)), uint64(f.expire))
	s.set(key, append(b, f.value...))
}

// setField sets a field, new or not.
func (s *State) setField(m *meta, name []byte, f field) {
	if !s.has(dataKey(m.id, name)) {
		m.count++
	}
	s.putField(m, name, f)
}

func (s *State) removeField(m *meta, name []byte) {
	if key := dataKey(m.id, name); s.has(key) {
		s.del(key)
		m.count--
	}
}

// cmdHset is HSET and HMSET.
func cmdHset(s *State, a [][]byte) error {
	if len(a)%2 != 0 {
		return errArgs
	}
	m, err := s.findOrMake(a[1], record.Hash)
	if err != nil {
		return err
	}
	for i := 2; i < len(a); i += 2 {
		s.setField(m, a[i], field{value: a[i+1]})
	}
	s.put(a[1], m)
	return nil
}

func cmdHsetnx(s *State, a [][]byte) error {
	m, err := s.findOrMake(a[1], record.Hash)
	if err != nil || s.has(dataKey(m.id, a[2])) {
		return err
	}
	return cmdHset(s, a)
}

func cmdHdel(s *State, a [][]byte) error {
	m, err := s.findType(a[1], record.Hash)
	if err != nil || m == nil {
		return err
	}
	for _, name := range a[2:] {
		s.removeField(m, name)
	}
	s.put(a[1], m)
	return nil
}

func cmdHincrby(s *State, a [][]byte) error {
	by, err := parseInt(a[3])
	if err != nil {
		return err
	}
	m, err := s.findOrMake(a[1], record.Hash)
	if err != nil {
		return err
	}
	f, ok := s.field(m, a[2])
	n := int64(0)
	if ok {
		if n, err = parseInt(f.value); err != nil {
			return &ReplyError{"ERR hash value is not an integer"}
		}
	}
	if n, err = add(n, by); err != nil {
		return err
	}
	f.value = strconv.AppendInt(nil, n, 10)
	s.setField(m, a[2], f)
	s.put(a[1], m)
	return nil
}

// fields reads FIELDS n name … at a[i:], with so many words for each, and returns the names.
func fields(a [][]byte, i, each int) ([][]byte, error) {
	if i+1 >= len(a) || !is(a[i], "FIELDS") {
		return nil, &ReplyError{"ERR Mandatory argument FIELDS is missing or not at the right position"}
	}
	n, err := parseInt(a[i+1])
	names := a[i+2:]
	if err != nil || n < 1 || n > math.MaxInt32 || int(n)*each != len(names) {
		return nil, &ReplyError{"ERR Parameter `numFields` should match the number of arguments"}
	}
	return names, nil
}

// cmdHexpire is the family of HEXPIRE, whose times are in a unit of SET.
func cmdHexpire(unit string) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		t, err := parseInt(a[2])
		if err != nil {
			return err
		}
		at, err := s.moment(unit, t)
		if err != nil || at < 0 {
			return errExpire
		}
		i := 3
		for i < len(a) && !is(a[i], "FIELDS") {
			i++
		}
		names, err := fields(a, i, 1)
		if err != nil {
			return err
		}
		return s.eachField(a[1], names, func(f *field) (bool, error) {
			ok, err := mayExpire(a[3:i], f.expire, at)
			f.expire = past(at)
			return ok, err
		})
	}
}

// eachField changes those fields of a hash that it has; change reports whether there is anything to write.
func (s *State) eachField(key []byte, names [][]byte, change func(*field) (bool, error)) error {
	m, err := s.findType(key, record.Hash)
	if err != nil || m == nil {
		return err
	}
	for _, name := range names {
		f, ok := s.field(m, name)
		if !ok {
			continue
		}
		if ok, err = change(&f); err != nil {
			return err
		}
		if ok {
			s.putField(m, name, f)
		}
	}
	return nil
}

func cmdHpersist(s *State, a [][]byte) error {
	names, err := fields(a, 2, 1)
	if err != nil {
		return err
	}
	return s.eachField(a[1], names, func(f *field) (bool, error) {
		f.expire = 0
		return true, nil
	})
}

func cmdHgetdel(s *State, a [][]byte) error {
	names, err := fields(a, 2, 1)
	if err != nil {
		return err
	}
	return cmdHdel(s, append([][]byte{nil, a[1]}, names...))
}

// cmdHgetex is HGETEX, of which only the change of the expiries matters.
func cmdHgetex(s *State, a [][]byte) error {
	var o setOptions
	i := 2
	for i < len(a) && !is(a[i], "FIELDS") {
		var err error
		if is(a[i], "PERSIST") {
			i++
		} else if i, err = o.option(s, a, i); err != nil {
			return err
		}
	}
	names, err := fields(a, i, 1)
	if err != nil || i == 2 {
		return err
	}
	return s.eachField(a[1], names, func(f *field) (bool, error) {
		f.expire = o.expire
		return true, nil
	})
}

func cmdHsetex(s *State, a [][]byte) error {
	var o setOptions
	var fnx, fxx bool
	i := 2
	for i < len(a) && !is(a[i], "FIELDS") {
		var err error
		switch {
		case is(a[i], "FNX"):
			fnx = true
			i++
		case is(a[i], "FXX"):
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
	m, err := s.findOrMake(a[1], record.Hash)
	if err != nil || o.nx && m.count > 0 || o.xx && m.count == 0 {
		return err
	}
	for j := 0; j < len(pairs) && (fnx || fxx); j += 2 {
		if s.has(dataKey(m.id, pairs[j])) == fnx {
			return nil
		}
	}
	for j := 0; j < len(pairs); j += 2 {
		f := field{expire: o.expire, value: pairs[j+1]}
		if o.keep {
			old, _ := s.field(m, pairs[j])
			f.expire = old.expire
		}
		s.setField(m, pairs[j], f)
	}
	s.put(a[1], m)
	return nil
}
