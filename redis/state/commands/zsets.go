package commands

import (
	"bytes"
	"math"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// zaddFlags are the options of ZADD.
type zaddFlags struct {
	conditions
	incr bool
}

// read parses the flags at the start of a and returns the other arguments.
func (f *zaddFlags) read(a [][]byte) ([][]byte, error) {
	for len(a) > 0 && (f.set(a[0]) || argument.Is(a[0], "CH") || argument.Is(a[0], "INCR")) {
		f.incr = f.incr || argument.Is(a[0], "INCR")
		a = a[1:]
	}
	if len(a) == 0 || len(a)%2 != 0 || f.incr && len(a) > 2 || f.clash() {
		return nil, argument.ErrSyntax
	}
	return a, nil
}

func cmdZadd(s *state.Server, a [][]byte) error {
	var f zaddFlags
	pairs, err := f.read(a[2:])
	if err != nil {
		return err
	}
	scores := make([]float64, len(pairs)/2)
	for i := range scores {
		if scores[i], err = argument.ParseFloat(pairs[2*i]); err != nil {
			return err
		}
	}
	v, err := s.FindOrMake(a[1], record.ZSet)
	if err != nil || f.xx && v.Len() == 0 {
		return err
	}
	for i, score := range scores {
		if err := zadd(v, &f, score, pairs[2*i+1]); err != nil {
			return err
		}
	}
	s.DB.Store(a[1], v)
	return nil
}

func zadd(v *state.Value, f *zaddFlags, score float64, member []byte) error {
	old, ok := v.Score(member)
	if ok && f.nx || !ok && f.xx {
		return nil
	}
	if f.incr && ok {
		if score += old; math.IsNaN(score) {
			return argument.Refuse("ERR resulting score is not a number (NaN)")
		}
	}
	if ok && (f.gt && score <= old || f.lt && score >= old) {
		return nil
	}
	v.SetScore(member, score)
	return nil
}

func cmdZincrby(s *state.Server, a [][]byte) error {
	return cmdZadd(s, [][]byte{a[0], a[1], []byte("INCR"), a[2], a[3]})
}

func cmdZpop(back bool) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		n, err := popped(a)
		if err != nil {
			return err
		}
		v, err := s.Find(a[1], record.ZSet)
		if err != nil {
			return err
		}
		return removeWhere(s, a[1], v, back, func(i int64, _ state.Scored) (bool, bool) { return i < n, i+1 < n })
	}
}

// removeWhere calls in for the members of a sorted set in order, until more is false, and removes members for
// which remove is true.
func removeWhere(s *state.Server, key []byte, v *state.Value, back bool, in func(i int64, z state.Scored) (remove, more bool)) error {
	if v == nil {
		return nil
	}
	i := int64(0)
	v.Ranked(back, func(z state.Scored) bool {
		remove, more := in(i, z)
		if remove {
			v.Remove(z.Member)
		}
		i++
		return more
	})
	s.DB.Store(key, v)
	return nil
}

func cmdZremrangebyrank(s *state.Server, a [][]byte) error {
	v, from, to, err := ranks(s, a, record.ZSet)
	if err != nil {
		return err
	}
	back := from > v.Len()-to // from the end that is nearer
	if back {
		from, to = v.Len()-to, v.Len()-from
	}
	return removeWhere(s, a[1], v, back, func(i int64, _ state.Scored) (bool, bool) {
		return i >= from && i < to, i+1 < to
	})
}

func cmdZremrangebyscore(s *state.Server, a [][]byte) error {
	b, err := argument.ParseScores(a[2], a[3])
	if err != nil {
		return err
	}
	v, err := s.Find(a[1], record.ZSet)
	if err != nil {
		return err
	}
	return removeWhere(s, a[1], v, false, func(_ int64, z state.Scored) (bool, bool) {
		return b.HasScore(z.Score), z.Score <= b.Max
	})
}

func cmdZremrangebylex(s *state.Server, a [][]byte) error {
	b, err := argument.ParseMembers(a[2], a[3])
	if err != nil {
		return err
	}
	v, err := s.Find(a[1], record.ZSet)
	if err == nil {
		err = oneScore(v)
	}
	if err != nil {
		return err
	}
	return removeWhere(s, a[1], v, false, func(_ int64, z state.Scored) (bool, bool) {
		return b.HasMember(z.Member), true
	})
}

// oneScore returns an error if the members of a sorted set have several scores: a range of members is then
// undefined, and a server's result arbitrary.
func oneScore(v *state.Value) error {
	var ends [2]float64
	for i, back := range []bool{false, true} {
		v.Ranked(back, func(z state.Scored) bool {
			ends[i] = z.Score
			return false
		})
	}
	if ends[0] != ends[1] {
		return state.Unsupported("BYLEX", "a range of members is not defined where scores differ")
	}
	return nil
}

// cmdZmove is ZMOVE source target MIN|MAX|BYSCORE least most [COUNT n].
func cmdZmove(s *state.Server, a [][]byte) error {
	in, options, back := func(state.Scored) bool { return true }, a[4:], argument.Is(a[3], "MAX")
	count := int64(1)
	byScore := argument.Is(a[3], "BYSCORE")
	switch {
	case byScore && len(options) >= 2:
		b, err := argument.ParseScores(options[0], options[1])
		if err != nil {
			return err
		}
		in, options = func(z state.Scored) bool { return b.HasScore(z.Score) }, options[2:]
	case !back && !argument.Is(a[3], "MIN"):
		return s.Option("ZMOVE", a[3])
	}
	if len(options) > 0 {
		if len(options) != 2 || !argument.Is(options[0], "COUNT") {
			return s.Option("ZMOVE", options[0])
		}
		var err error
		if count, err = argument.ParseInt(options[1]); err != nil || count < 1 {
			return argument.ErrRange
		}
	}
	return moveMembers(s, a, func(src, _ *state.Value) (list [][]byte, err error) {
		src.Ranked(back, func(z state.Scored) bool {
			if in(z) {
				list = append(list, bytes.Clone(z.Member))
			}
			return byScore || int64(len(list)) < count
		})
		if byScore && int64(len(list)) > count {
			err = state.Unsupported("ZMOVE BYSCORE", "which members of the range a server moves is unknown")
		}
		return list, err
	})
}

// cmdZmovemember is ZMOVEMEMBER source target [NX|XX] MEMBERS n member ….
func cmdZmovemember(s *state.Server, a [][]byte) error {
	names, nx, xx := a[3:], argument.Is(a[3], "NX"), argument.Is(a[3], "XX")
	if nx || xx {
		names = names[1:]
	}
	if len(names) < 3 || !argument.Is(names[0], "MEMBERS") {
		return s.Option("ZMOVEMEMBER", names[0])
	}
	if n, err := argument.ParseInt(names[1]); err != nil || n != int64(len(names)-2) {
		return argument.ErrSyntax
	}
	return moveMembers(s, a, func(_, dst *state.Value) (list [][]byte, err error) {
		for _, name := range names[2:] {
			if _, has := dst.Score(name); !(nx && has || xx && !has) {
				list = append(list, name)
			}
		}
		return list, nil
	})
}

// moveMembers moves the members that choose returns from the sorted set a[1] to a[2]. They keep their scores.
func moveMembers(s *state.Server, a [][]byte, choose func(src, dst *state.Value) ([][]byte, error)) error {
	src, err := s.Find(a[1], record.ZSet)
	if err != nil || src == nil {
		return err
	}
	dst, err := s.FindOrMake(a[2], record.ZSet)
	if err != nil || bytes.Equal(a[1], a[2]) {
		return err
	}
	list, err := choose(src, dst)
	if err != nil {
		return err
	}
	for _, name := range list {
		if score, ok := src.Score(name); ok { // not moved before
			dst.SetScore(name, score)
			src.Remove(name)
		}
	}
	s.DB.Store(a[1], src)
	s.DB.Store(a[2], dst)
	return nil
}

// unblocked is the blocking form of a command, whose timeout is the argument at: in a log it does not wait.
func unblocked(at int, run func(*state.Server, [][]byte) error) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error { return run(s, slices.Delete(slices.Clone(a), at, at+1)) }
}
