package commands

import (
	"math"
	"sort"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// operand is a source of ZUNIONSTORE and its kin: a sorted set, or a set whose members all have the score 1.
type operand struct {
	v      *state.Value // nil: the key does not exist
	weight float64
}

// each calls f with the members and their scores.
func each(v *state.Value, f func(member []byte, score float64) bool) {
	switch {
	case v == nil:
	case v.Type == record.Set:
		v.Members(func(member []byte) bool { return f(member, 1) })
	default:
		v.Scores(f)
	}
}

// scoreIn returns the score of a member in a source.
func scoreIn(v *state.Value, member []byte) (float64, bool) {
	switch {
	case v == nil:
		return 0, false
	case v.Type == record.Set:
		return 1, v.Has(member)
	}
	return v.Score(member)
}

// aggregate is how scores of one member are combined.
type aggregate func(a, b float64) float64

var aggregates = map[string]aggregate{
	"SUM": func(a, b float64) float64 { return number(a + b) },
	"MIN": math.Min,
	"MAX": math.Max,
}

// number replaces NaN, the result of inf - inf, by 0.
func number(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// operands parses "numkeys key … [WEIGHTS …] [AGGREGATE …]" after a command's name and target.
func operands(s *state.Server, command []byte, a [][]byte) ([]operand, aggregate, error) {
	n, err := argument.ParseInt(a[0])
	if err != nil {
		return nil, nil, err
	}
	if n < 1 || int64(len(a)-1) < n {
		return nil, nil, argument.ErrSyntax
	}
	in := make([]operand, n)
	for i := range in {
		v := s.DB.Find(a[1+i])
		if v != nil && v.Type != record.ZSet && v.Type != record.Set {
			return nil, nil, argument.ErrWrongType
		}
		in[i] = operand{v, 1}
	}
	how, plain := aggregates["SUM"], argument.Is(command, "ZDIFFSTORE")
	for rest := a[1+n:]; len(rest) > 0; {
		switch {
		case !plain && argument.Is(rest[0], "WEIGHTS") && len(rest) > int(n):
			for i := range in {
				if in[i].weight, err = argument.ParseFloat(rest[1+i]); err != nil {
					return nil, nil, argument.Refuse("ERR weight value is not a float")
				}
			}
			rest = rest[1+n:]
		case !plain && argument.Is(rest[0], "AGGREGATE") && len(rest) > 1 && aggregates[string(s.Upper(rest[1]))] != nil:
			how = aggregates[string(s.Upper(rest[1]))]
			rest = rest[2:]
		default:
			return nil, nil, s.Option(name(command), rest[0])
		}
	}
	return in, how, nil
}

// cmdZstore is ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE: op fills out from the sources.
func cmdZstore(op func(out *state.Value, in []operand, how aggregate)) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		in, how, err := operands(s, a[0], a[2:])
		if err != nil {
			return err
		}
		out := s.DB.Make(record.ZSet)
		op(out, in, how)
		s.DB.Store(a[1], out)
		return nil
	}
}

// bySize orders sources as servers do, the smallest first: sums of floats depend on it.
func bySize(in []operand) {
	sort.SliceStable(in, func(i, j int) bool { return in[i].v.Len() < in[j].v.Len() })
}

func zsetUnion(out *state.Value, in []operand, how aggregate) {
	bySize(in)
	for _, o := range in {
		each(o.v, func(member []byte, score float64) bool {
			score = number(score * o.weight)
			if old, ok := out.Score(member); ok {
				score = how(old, score)
			}
			out.SetScore(member, score)
			return true
		})
	}
}

func zsetInter(out *state.Value, in []operand, how aggregate) {
	bySize(in)
	each(in[0].v, func(member []byte, score float64) bool {
		score = number(score * in[0].weight)
		for _, o := range in[1:] {
			other, ok := scoreIn(o.v, member)
			if !ok {
				return true
			}
			score = how(score, number(other*o.weight))
		}
		out.SetScore(member, score)
		return true
	})
}

func zsetDiff(out *state.Value, in []operand, _ aggregate) {
	each(in[0].v, func(member []byte, score float64) bool {
		for _, o := range in[1:] {
			if _, ok := scoreIn(o.v, member); ok {
				return true
			}
		}
		out.SetScore(member, score)
		return true
	})
}

// zrange holds the options of ZRANGESTORE.
type zrange struct {
	byScore, byLex, rev bool
	offset, limit       int64
}

func (z *zrange) read(s *state.Server, a [][]byte) error {
	z.limit = -1
	for i := 0; i < len(a); i++ {
		switch {
		case argument.Is(a[i], "BYSCORE") && !z.byScore && !z.byLex:
			z.byScore = true
		case argument.Is(a[i], "BYLEX") && !z.byScore && !z.byLex:
			z.byLex = true
		case argument.Is(a[i], "REV") && !z.rev:
			z.rev = true
		case argument.Is(a[i], "LIMIT") && i+2 < len(a):
			n, err := argument.ParseInts(a[i+1], a[i+2])
			if err != nil {
				return err
			}
			z.offset, z.limit = n[0], n[1]
			i += 2
		default:
			return s.Option("ZRANGESTORE", a[i])
		}
	}
	if z.byScore || z.byLex {
		return nil
	}
	if z.limit != -1 {
		return argument.ErrSyntax
	}
	z.offset = 0 // without a limit the offset is ignored
	return nil
}

func cmdZrangestore(s *state.Server, a [][]byte) error {
	var z zrange
	if err := z.read(s, a[5:]); err != nil {
		return err
	}
	in, err := z.contents(a[3], a[4])
	if err != nil {
		return err
	}
	v, err := s.Find(a[2], record.ZSet)
	if err == nil && z.byLex {
		err = oneScore(v)
	}
	if err != nil {
		return err
	}
	out := s.DB.Make(record.ZSet)
	if v != nil && z.offset >= 0 {
		from, to := int64(0), int64(0)
		if !z.byScore && !z.byLex {
			n, _ := argument.ParseInts(a[3], a[4])
			from, to = argument.Span(n[0], n[1], v.Len())
		}
		i, seen, taken := int64(0), int64(0), int64(0)
		v.Ranked(z.rev, func(x state.Scored) bool {
			ok := in(x) && (z.byScore || z.byLex || i >= from && i < to)
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
			exact, _ := v.Score(x.Member)
			out.SetScore(x.Member, exact)
			return true
		})
	}
	s.DB.Store(a[1], out)
	return nil
}

// contents returns a function that reports whether a member is in the range; for a range by rank it is always
// true.
func (z *zrange) contents(lo, hi []byte) (func(state.Scored) bool, error) {
	if z.rev && (z.byScore || z.byLex) {
		lo, hi = hi, lo
	}
	switch {
	case z.byScore:
		b, err := argument.ParseScores(lo, hi)
		return func(v state.Scored) bool { return b.HasScore(v.Score) }, err
	case z.byLex:
		b, err := argument.ParseMembers(lo, hi)
		return func(v state.Scored) bool { return b.HasMember(v.Member) }, err
	}
	_, err := argument.ParseInts(lo, hi)
	return func(state.Scored) bool { return true }, err
}
