package state

import (
	"bytes"
	"encoding/binary"
	"math"

	"kvferry/record"
)

// scored is a member of a sorted set.
type scored struct {
	score  float64
	member []byte
}

func memberKey(m *meta, member []byte) []byte { return dataKey(m.id, []byte{'m'}, member) }

// orderKey is the row that has a member in the order of scores. -0 and 0 are the same score.
func orderKey(m *meta, score float64, member []byte) []byte {
	return dataKey(m.id, []byte{'s'}, appendScore(nil, score), member)
}

// appendScore appends a score in bytes that compare as scores do.
func appendScore(dst []byte, score float64) []byte {
	bits := math.Float64bits(score + 0) // makes 0 of -0
	if bits>>63 != 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(dst, bits)
}

func decodeScore(b []byte) float64 {
	bits := binary.BigEndian.Uint64(b)
	if bits>>63 != 0 {
		return math.Float64frombits(bits &^ (1 << 63))
	}
	return math.Float64frombits(^bits)
}

func (s *State) score(m *meta, member []byte) (float64, bool) {
	b, ok := s.get(memberKey(m, member))
	if !ok {
		return 0, false
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), true
}

// putScore sets a member's score. An equal one stays, so that 0 does not become -0.
func (s *State) putScore(m *meta, member []byte, score float64) {
	old, ok := s.score(m, member)
	if ok && old == score {
		return
	}
	if ok {
		s.del(orderKey(m, old, member))
	} else {
		m.count++
	}
	s.set(memberKey(m, member), binary.LittleEndian.AppendUint64(nil, math.Float64bits(score)))
	s.set(orderKey(m, score, member), nil)
}

func (s *State) removeScore(m *meta, member []byte) {
	if old, ok := s.score(m, member); ok {
		s.del(memberKey(m, member))
		s.del(orderKey(m, old, member))
		m.count--
	}
}

// ranked calls f with the members in the order of scores, or backwards, until it returns false.
func (s *State) ranked(m *meta, back bool, f func(scored) bool) {
	if m == nil {
		return
	}
	s.walk(dataKey(m.id, []byte{'s'}), nil, back, func(key, _ []byte) bool {
		return f(scored{decodeScore(key), key[8:]})
	})
}

// zaddFlags are the options of ZADD.
type zaddFlags struct{ nx, xx, gt, lt, incr bool }

// read takes the flags at the front of a and returns what follows.
func (f *zaddFlags) read(a [][]byte) ([][]byte, error) {
	flags := map[string]*bool{"NX": &f.nx, "XX": &f.xx, "GT": &f.gt, "LT": &f.lt, "INCR": &f.incr, "CH": new(bool)}
	for len(a) > 0 {
		set := flags[string(bytes.ToUpper(a[0]))]
		if set == nil {
			break
		}
		*set = true
		a = a[1:]
	}
	switch {
	case len(a) == 0 || len(a)%2 != 0 || f.incr && len(a) > 2:
		return nil, errSyntax
	case f.nx && f.xx, f.gt && f.lt, f.nx && (f.gt || f.lt):
		return nil, errSyntax
	}
	return a, nil
}

func cmdZadd(s *State, a [][]byte) error {
	var f zaddFlags
	pairs, err := f.read(a[2:])
	if err != nil {
		return err
	}
	scores := make([]float64, len(pairs)/2)
	for i := range scores {
		if scores[i], err = parseFloat(pairs[2*i]); err != nil {
			return err
		}
	}
	m, err := s.findOrMake(a[1], record.ZSet)
	if err != nil || f.xx && m.count == 0 {
		return err
	}
	for i, score := range scores {
		if err := s.zadd(m, &f, score, pairs[2*i+1]); err != nil {
			return err
		}
	}
	s.put(a[1], m)
	return nil
}

func (s *State) zadd(m *meta, f *zaddFlags, score float64, member []byte) error {
	old, ok := s.score(m, member)
	if ok && f.nx || !ok && f.xx {
		return nil
	}
	if f.incr && ok {
		if score += old; math.IsNaN(score) {
			return &ReplyError{"ERR resulting score is not a number (NaN)"}
		}
	}
	if ok && (f.gt && score <= old || f.lt && score >= old) {
		return nil
	}
	s.putScore(m, member, score)
	return nil
}

func cmdZincrby(s *State, a [][]byte) error {
	return cmdZadd(s, [][]byte{a[0], a[1], []byte("INCR"), a[2], a[3]})
}

func cmdZrem(s *State, a [][]byte) error {
	m, err := s.findType(a[1], record.ZSet)
	if err != nil || m == nil {
		return err
	}
	for _, member := range a[2:] {
		s.removeScore(m, member)
	}
	s.put(a[1], m)
	return nil
}

func cmdZpop(back bool) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		n := int64(1)
		if len(a) > 2 {
			var err error
			if n, err = parseInt(a[2]); err != nil || n < 0 {
				return errRange
			}
		}
		return s.removeWhere(a[1], back, func(i int64, _ scored) (bool, bool) { return i < n, i+1 < n })
	}
}

// removeWhere removes the members of a sorted set that in reports of, going through them in order until it says
// that there are no more.
func (s *State) removeWhere(key []byte, back bool, in func(i int64, z scored) (remove, more bool)) error {
	m, err := s.findType(key, record.ZSet)
	if err != nil || m == nil {
		return err
	}
	i := int64(0)
	s.ranked(m, back, func(z scored) bool {
		remove, more := in(i, z)
		if remove {
			s.removeScore(m, z.member)
		}
		i++
		return more
	})
	s.put(key, m)
	return nil
}

func cmdZremrangebyrank(s *State, a [][]byte) error {
	n, err := integers(a[2], a[3])
	if err != nil {
		return err
	}
	m, err := s.findType(a[1], record.ZSet)
	if err != nil || m == nil {
		return err
	}
	from, to := span(n[0], n[1], int64(m.count))
	return s.removeWhere(a[1], false, func(i int64, _ scored) (bool, bool) {
		return i >= from && i < to, i+1 < to
	})
}

// bounds are those of a range of scores or of members.
type bounds struct {
	min, max         float64
	lo, hi           []byte
	openMin, openMax bool // the ends are not in the range
	fromAny, toAny   bool // of members: no end
	none             bool // of members: + as the least or - as the greatest
}

// parseScores reads a range of scores: a number, or "(" and a number.
func parseScores(lo, hi []byte) (*bounds, error) {
	b := new(bounds)
	var err error
	if len(lo) > 0 && lo[0] == '(' {
		b.openMin, lo = true, lo[1:]
	}
	if len(hi) > 0 && hi[0] == '(' {
		b.openMax, hi = true, hi[1:]
	}
	if b.min, err = parseFloat(lo); err == nil {
		b.max, err = parseFloat(hi)
	}
	if err != nil {
		return nil, &ReplyError{"ERR min or max is not a float"}
	}
	return b, nil
}

// parseMembers reads a range of members: "[" or "(" and a member, - or +.
func parseMembers(lo, hi []byte) (*bounds, error) {
	b := new(bounds)
	bad := &ReplyError{"ERR min or max not valid string range item"}
	end := func(e []byte, open, least, most *bool) ([]byte, error) {
		switch {
		case string(e) == "-":
			*least = true
		case string(e) == "+":
			*most = true
		case len(e) > 0 && (e[0] == '(' || e[0] == '['):
			*open = e[0] == '('
			return e[1:], nil
		default:
			return nil, bad
		}
		return nil, nil
	}
	var err error
	var none1, none2 bool
	if b.lo, err = end(lo, &b.openMin, &b.fromAny, &none1); err != nil {
		return nil, err
	}
	if b.hi, err = end(hi, &b.openMax, &none2, &b.toAny); err != nil {
		return nil, err
	}
	b.none = none1 || none2
	return b, nil
}

func (b *bounds) hasScore(v float64) bool {
	return (v > b.min || v == b.min && !b.openMin) && (v < b.max || v == b.max && !b.openMax)
}

func (b *bounds) hasMember(v []byte) bool {
	if b.none {
		return false
	}
	lo, hi := bytes.Compare(v, b.lo), bytes.Compare(v, b.hi)
	return (b.fromAny || lo > 0 || lo == 0 && !b.openMin) && (b.toAny || hi < 0 || hi == 0 && !b.openMax)
}

func cmdZremrangebyscore(s *State, a [][]byte) error {
	b, err := parseScores(a[2], a[3])
	if err != nil {
		return err
	}
	return s.removeWhere(a[1], false, func(_ int64, z scored) (bool, bool) {
		return b.hasScore(z.score), z.score <= b.max
	})
}

func cmdZremrangebylex(s *State, a [][]byte) error {
	b, err := parseMembers(a[2], a[3])
	if err != nil {
		return err
	}
	if err := s.oneScore(a[1]); err != nil {
		return err
	}
	return s.removeWhere(a[1], false, func(_ int64, z scored) (bool, bool) {
		return b.hasMember(z.member), true
	})
}

// oneScore returns an error when the members of a sorted set have several scores: a range of members is not defined
// then, and what a server takes for it depends on chance.
func (s *State) oneScore(key []byte) error {
	m, err := s.findType(key, record.ZSet)
	if err != nil || m == nil {
		return err
	}
	var ends [2]float64
	for i, back := range []bool{false, true} {
		s.ranked(m, back, func(z scored) bool {
			ends[i] = z.score
			return false
		})
	}
	if ends[0] != ends[1] {
		return unsupported("BYLEX", "a range of members is not defined where scores differ")
	}
	return nil
}
