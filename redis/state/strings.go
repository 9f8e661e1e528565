package state

import (
	"encoding/binary"
	"math"
	"strconv"

	"kvferry/record"
)

const (
	// chunk is how many bytes a row of a long string has; strings up to it lie in the key's row.
	chunk = 16 << 10
	// maxString is the longest string that a server makes of shorter ones.
	maxString = 512 << 20
)

// setString makes a key a string.
func (s *State) setString(key, value []byte, expire int64) {
	m := &meta{typ: record.String, expire: expire, inline: true, value: value}
	s.putString(key, m)
}

// putString writes a string's row, and its value in chunks when it is long.
func (s *State) putString(key []byte, m *meta) {
	if m.inline && len(m.value) > chunk {
		value := m.value
		f := s.fresh(record.String)
		f.expire = m.expire
		*m = *f
		s.writeAt(m, 0, value)
	}
	s.put(key, m)
}

// length is that of a string.
func (m *meta) length() int64 {
	if m.inline {
		return int64(len(m.value))
	}
	return int64(m.count)
}

// content returns the whole value of a string; nil has none.
func (s *State) content(m *meta) []byte {
	if m == nil {
		return nil
	}
	return s.readAt(m, 0, m.length())
}

// readAt returns n bytes of a string from off on, fewer at its end.
func (s *State) readAt(m *meta, off, n int64) []byte {
	n = min(n, m.length()-off)
	if n <= 0 {
		return nil
	}
	if m.inline {
		return m.value[off : off+n]
	}
	out := make([]byte, 0, n)
	for at := off; at < off+n; {
		c, _ := s.get(chunkKey(m.id, at/chunk))
		from := at % chunk
		to := min(chunk, from+off+n-at)
		have := min(int64(len(c)), to)
		if have > from {
			out = append(out, c[from:have]...)
		}
		out = append(out, make([]byte, to-max(from, have))...)
		at += to - from
	}
	return out
}

func chunkKey(id uint64, n int64) []byte {
	return binary.BigEndian.AppendUint64(dataKey(id), uint64(n))
}

// writeAt puts bytes into a string at off, which grows, with zero bytes in between. The key's row is not written.
func (s *State) writeAt(m *meta, off int64, b []byte) {
	end := off + int64(len(b))
	if m.inline {
		if size := max(end, int64(len(m.value))); size <= chunk {
			value := make([]byte, size)
			copy(value, m.value)
			copy(value[off:], b)
			m.value = value
			return
		}
		value := m.value
		m.inline, m.value, m.id, m.count = false, nil, s.nextID, 0
		s.nextID++
		s.writeAt(m, 0, value)
	}
	for at := off; at < end; {
		n, from := at/chunk, at%chunk
		to := min(chunk, from+end-at)
		c, _ := s.get(chunkKey(m.id, n))
		if int64(len(c)) < to {
			c = append(c, make([]byte, to-int64(len(c)))...)
		}
		copy(c[from:to], b[at-off:])
		s.set(chunkKey(m.id, n), c)
		at += to - from
	}
	m.count = max(m.count, uint64(end))
}

// setOptions are those of SET and of HSETEX.
type setOptions struct {
	nx, xx, keep bool
	get          bool
	expire       int64
	equal        []byte // of IFEQ, nil without
}

// option reads one option of SET at args[i] and returns where the next is.
func (o *setOptions) option(s *State, args [][]byte, i int) (int, error) {
	switch {
	case is(args[i], "NX"):
		o.nx = true
	case is(args[i], "XX"):
		o.xx = true
	case is(args[i], "GET"):
		o.get = true
	case is(args[i], "KEEPTTL"):
		o.keep = true
	case is(args[i], "IFEQ") && i+1 < len(args):
		o.equal = append([]byte{}, args[i+1]...)
		return i + 2, nil
	case expiryUnits[string(s.upper(args[i]))] != 0 && i+1 < len(args):
		t, err := parseInt(args[i+1])
		if err != nil {
			return 0, err
		}
		if t <= 0 {
			return 0, errExpire
		}
		if o.expire, err = s.moment(string(s.name), t); err != nil {
			return 0, err
		}
		return i + 2, nil
	default:
		return 0, unsupported("SET "+string(s.upper(args[i])), "kvferry does not know this option")
	}
	return i + 1, nil
}

// expiryUnits are the ways to say when a key expires: how many ms a unit has, negative when it counts from now.
var expiryUnits = map[string]int64{"EX": -1000, "PX": -1, "EXAT": 1000, "PXAT": 1}

// moment turns the time of EX, PX, EXAT or PXAT into Unix ms.
func (s *State) moment(unit string, t int64) (int64, error) {
	ms := expiryUnits[unit]
	base := int64(0)
	if ms < 0 {
		ms, base = -ms, s.now
	}
	if t > math.MaxInt64/ms || t < math.MinInt64/ms || base > 0 && t*ms > math.MaxInt64-base {
		return 0, errExpire
	}
	return t*ms + base, nil
}

func cmdSet(s *State, a [][]byte) error {
	var o setOptions
	var err error
	for i := 3; i < len(a); {
		if i, err = o.option(s, a, i); err != nil {
			return err
		}
	}
	if o.nx || o.xx || o.keep || o.get || o.equal != nil {
		old := s.find(a[1])
		if o.get && old != nil && old.typ != record.String {
			return errWrongType
		}
		if o.nx && old != nil || o.xx && old == nil {
			return nil
		}
		if o.equal != nil && (old == nil || old.typ != record.String || string(s.content(old)) != string(o.equal)) {
			return nil
		}
		if o.keep && old != nil {
			o.expire = old.expire
		}
	}
	s.setString(a[1], a[2], o.expire)
	return nil
}

// cmdSetex is SETEX and PSETEX.
func cmdSetex(unit string) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		t, err := parseInt(a[2])
		if err != nil {
			return err
		}
		if t <= 0 {
			return errExpire
		}
		at, err := s.moment(unit, t)
		if err == nil {
			s.setString(a[1], a[3], at)
		}
		return err
	}
}

func cmdSetnx(s *State, a [][]byte) error {
	if s.find(a[1]) == nil {
		s.setString(a[1], a[2], 0)
	}
	return nil
}

func cmdGetset(s *State, a [][]byte) error {
	if _, err := s.findType(a[1], record.String); err != nil {
		return err
	}
	s.setString(a[1], a[2], 0)
	return nil
}

func cmdMset(s *State, a [][]byte) error {
	if len(a)%2 != 1 {
		return errArgs
	}
	for i := 1; i < len(a); i += 2 {
		s.setString(a[i], a[i+1], 0)
	}
	return nil
}

func cmdMsetnx(s *State, a [][]byte) error {
	if len(a)%2 != 1 {
		return errArgs
	}
	for i := 1; i < len(a); i += 2 {
		if s.find(a[i]) != nil {
			return nil
		}
	}
	return cmdMset(s, a)
}

func cmdAppend(s *State, a [][]byte) error {
	m, err := s.findType(a[1], record.String)
	if err != nil {
		return err
	}
	if m == nil {
		s.setString(a[1], a[2], 0)
		return nil
	}
	if m.length()+int64(len(a[2])) > maxString {
		return errTooLong
	}
	s.writeAt(m, m.length(), a[2])
	s.put(a[1], m)
	return nil
}

func cmdSetrange(s *State, a [][]byte) error {
	off, err := parseInt(a[2])
	if err != nil {
		return err
	}
	if off < 0 {
		return errRange
	}
	m, err := s.findType(a[1], record.String)
	if err != nil || len(a[3]) == 0 {
		return err
	}
	if off > maxString-int64(len(a[3])) {
		return errTooLong
	}
	if m == nil {
		m = &meta{typ: record.String, inline: true}
	}
	s.writeAt(m, off, a[3])
	s.put(a[1], m)
	return nil
}

// cmdIncr is INCR and DECR, or INCRBY and DECRBY when the number is an argument.
func cmdIncr(sign int64) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		by := int64(1)
		if len(a) > 2 {
			var err error
			if by, err = parseInt(a[2]); err != nil {
				return err
			}
		}
		if sign < 0 && by == math.MinInt64 {
			return &ReplyError{"ERR decrement would overflow"}
		}
		m, err := s.findType(a[1], record.String)
		if err != nil {
			return err
		}
		if m == nil {
			m = &meta{typ: record.String, inline: true, value: []byte("0")}
		}
		if m.length() > 20 {
			return errInteger
		}
		n, err := parseInt(s.content(m))
		if err != nil {
			return err
		}
		if n, err = add(n, sign*by); err != nil {
			return err
		}
		s.setString(a[1], strconv.AppendInt(nil, n, 10), m.expire)
		return nil
	}
}

func add(a, b int64) (int64, error) {
	if a < 0 && b < math.MinInt64-a && b < 0 || a > 0 && b > 0 && b > math.MaxInt64-a {
		return 0, &ReplyError{"ERR increment or decrement would overflow"}
	}
	return a + b, nil
}
