package commands

import (
	"math"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

// zaddFlags are the options of ZADD.
type zaddFlags struct{ nx, xx, gt, lt, incr bool }

// read parses the flags at the start of a and returns the other arguments.
func (f *zaddFlags) read(a [][]byte) ([][]byte, error) {
	flags := map[string]*bool{"NX": &f.nx, "XX": &f.xx, "GT": &f.gt, "LT": &f.lt, "INCR": &f.incr, "CH": new(bool)}
	for len(a) > 0 {
		set := flags[name(a[0])]
		if set == nil {
			break
		}
		*set = true
		a = a[1:]
	}
	switch {
	case len(a) == 0 || len(a)%2 != 0 || f.incr && len(a) > 2:
		return nil, argument.ErrSyntax
	case f.nx && f.xx, f.gt && f.lt, f.nx && (f.gt || f.lt):
		return nil, argument.ErrSyntax
	}
	return a, nil
}

func cmdZadd(s *server.Server, a [][]byte) error {
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

func cmdZincrby(s *server.Server, a [][]byte) error {
	return cmdZadd(s, [][]byte{a[0], a[1], []byte("INCR"), a[2], a[3]})
}

func cmdZpop(back bool) func(*server.Server, [][]byte) error {
	return func(s *server.Server, a [][]byte) error {
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
func removeWhere(s *server.Server, key []byte, v *state.Value, back bool, in func(i int64, z state.Scored) (remove, more bool)) error {
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

func cmdZremrangebyrank(s *server.Server, a [][]byte) error {
	v, from, to, err := ranks(s, a, record.ZSet)
	if err != nil {
		return err
	}
	return removeWhere(s, a[1], v, false, func(i int64, _ state.Scored) (bool, bool) {
		return i >= from && i < to, i+1 < to
	})
}

func cmdZremrangebyscore(s *server.Server, a [][]byte) error {
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

func cmdZremrangebylex(s *server.Server, a [][]byte) error {
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
		return server.Unsupported("BYLEX", "a range of members is not defined where scores differ")
	}
	return nil
}
