package state

import (
	"encoding/binary"
	"math"
	"sort"

	"kvferry/record"
)

// operand is a source of ZUNIONSTORE and its kin: a sorted set, or a set whose members all have the score 1.
type operand struct {
	m      *meta // nil: the key is not there
	weight float64
}

func (o *operand) count() uint64 {
	if o.m == nil {
		return 0
	}
	return o.m.count
}

// each calls f with the members and their scores.
func (s *State) each(m *meta, f func(member []byte, score float64) bool) {
	switch {
	case m == nil:
	case m.typ == record.Set:
		s.members(m, func(v []byte) bool { return f(v, 1) })
	default:
		s.scan(dataKey(m.id, []byte{'m'}), func(key, value []byte) bool {
			return f(key, math.Float64frombits(binary.LittleEndian.Uint64(value)))
		})
	}
}

// scoreIn returns the score of a member in a source.
func (s *State) scoreIn(m *meta, member []byte) (float64, bool) {
	switch {
	case m == nil:
		return 0, false
	case m.typ == record.Set:
		return 1, s.contains(m, member)
	}
	return s.score(m, member)
}

// aggregate is how scores of one member go together.
type aggregate func(a, b float64) float64

var aggregates = map[string]aggregate{
	"SUM": func(a, b float64) float64 { return number(a + b) },
	"MIN": math.Min,
	"MAX": math.Max,
}

// number is 0 where there is none, as of inf - inf.
func number(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// operands reads "numkeys key … [WEIGHTS …] [AGGREGATE …]".
func (s *State) operands(a [][]byte) ([]operand, aggregate, error) {
	n, err := parseInt(a[0])
	if err != nil {
		return nil, nil, err
	}
	if n < 1 || int64(len(a)-1) < n {
		return nil, nil, errSyntax
	}
	in := make([]operand, n)
	for i := range in {
		m := s.find(a[1+i])
		if m != nil && m.typ != record.ZSet && m.typ != record.Set {
			return nil, nil, errWrongType
		}
		in[i] = operand{m, 1}
	}
	how := aggregates["SUM"]
	for rest := a[1+n:]; len(rest) > 0; {
		switch {
		case is(rest[0], "WEIGHTS") && len(rest) > int(n):
			for i := range in {
				if in[i].weight, err = parseFloat(rest[1+i]); err != nil {
					return nil, nil, &ReplyError{"ERR weight value is not a float"}
				}
			}
			rest = rest[1+n:]
		case is(rest[0], "AGGREGATE") && len(rest) > 1 && aggregates[string(s.upper(rest[1]))] != nil:
			how = aggregates[string(s.name)]
			rest = rest[2:]
		default:
			return nil, nil, errSyntax
		}
	}
	return in, how, nil
}

// cmdZstore is ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE: op fills out from the sources.
func cmdZstore(op func(s *State, out *meta, in []operand, how aggregate)) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		in, how, err := s.operands(a[2:])
		if err != nil {
			return err
		}
		out := s.fresh(record.ZSet)
		op(s, out, in, how)
		s.put(a[1], out)
		return nil
	}
}

// bySize orders sources as servers do, the smallest first: sums of floats depend on it.
func bySize(in []operand) {
	sort.SliceStable(in, func(i, j int) bool { return in[i].count() < in[j].count() })
}

func zsetUnion(s *State, out *meta, in []operand, how aggregate) {
	bySize(in)
	for _, o := range in {
		s.each(o.m, func(member []byte, score float64) bool {
			score = number(score * o.weight)
			if old, ok := s.score(out, member); ok {
				score = how(old, score)
			}
			s.putScore(out, member, score)
			return true
		})
	}
}

func zsetInter(s *State, out *meta, in []operand, how aggregate) {
	bySize(in)
	s.each(in[0].m, func(member []byte, score float64) bool {
		score = number(score * in[0].weight)
		for _, o := range in[1:] {
			v, ok := s.scoreIn(o.m, member)
			if !ok {
				return true
			}
			score = how(score, number(v*o.weight))
		}
		s.putScore(out, member, score)
		return true
	})
}

func zsetDiff(s *State, out *meta, in []operand, _ aggregate) {
	s.each(in[0].m, func(member []byte, score float64) bool {
		for _, o := range in[1:] {
			if _, ok := s.scoreIn(o.m, member); ok {
				return true
			}
		}
		s.putScore(out, member, score)
		return true
	})
}

// zrange is what ZRANGESTORE and GEOSEARCHSTORE's kin are asked for.
type zrange struct {
	byScore, byLex, rev bool
	offset, limit       int64
	limited             bool
}

func (z *zrange) read(a [][]byte) error {
	z.limit = -1
	for i := 0; i < len(a); i++ {
		switch {
		case is(a[i], "BYSCORE"):
			z.byScore = true
		case is(a[i], "BYLEX"):
			z.byLex = true
		case is(a[i], "REV"):
			z.rev = true
		case is(a[i], "LIMIT") && i+2 < len(a):
			n, err := integers(a[i+1], a[i+2])
			if err != nil {
				return err
			}
			z.offset, z.limit, z.limited = n[0], n[1], true
			i += 2
		default:
			return errSyntax
		}
	}
	if z.limited && !z.byScore && !z.byLex || z.byScore && z.byLex {
		return errSyntax
	}
	return nil
}

func cmdZrangestore(s *State, a [][]byte) error {
	var z zrange
	if err := z.read(a[5:]); err != nil {
		return err
	}
	in, err := z.contents(a[3], a[4])
	if err != nil {
		return err
	}
	m, err := s.findType(a[2], record.ZSet)
	if err == nil && z.byLex {
		err = s.oneScore(a[2])
	}
	if err != nil {
		return err
	}
	out := s.fresh(record.ZSet)
	if m != nil && z.offset >= 0 {
		from, to := int64(0), int64(0)
		if !z.byScore && !z.byLex {
			n, _ := integers(a[3], a[4])
			from, to = span(n[0], n[1], int64(m.count))
		}
		i, seen, taken := int64(0), int64(0), int64(0)
		s.ranked(m, z.rev, func(v scored) bool {
			ok := in(v) && (z.byScore || z.byLex || i >= from && i < to)
			i++
			if !ok {
				return true
			}
			if seen++; seen <= z.offset {
				return true
			}
			if z.limit >= 0 && taken >= z.limit {
				return false
			}
			taken++
			exact, _ := s.score(m, v.member)
			s.putScore(out, v.member, exact)
			return true
		})
	}
	s.put(a[1], out)
	return nil
}

// contents returns what tells whether a member is in the range; by rank all are.
func (z *zrange) contents(lo, hi []byte) (func(scored) bool, error) {
	if z.rev && (z.byScore || z.byLex) {
		lo, hi = hi, lo
	}
	switch {
	case z.byScore:
		b, err := parseScores(lo, hi)
		return func(v scored) bool { return b.hasScore(v.score) }, err
	case z.byLex:
		b, err := parseMembers(lo, hi)
		return func(v scored) bool { return b.hasMember(v.member) }, err
	}
	_, err := integers(lo, hi)
	return func(scored) bool { return true }, err
}
