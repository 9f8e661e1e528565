package commands

import (
	"cmp"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/syntax"
)

// operands are the sources of ZUNIONSTORE and related commands: sorted sets, or sets whose members all have the score 1.
type operands struct {
	syntax.Combination
	sets []*state.Value // nil: the key does not exist
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

// readOperands parses "numkeys key … [WEIGHTS …] [AGGREGATE …]" after a command's name and target.
func readOperands(s *state.Server, command []byte, a [][]byte) (*operands, error) {
	n, err := argument.ParseInt(a[0])
	if err != nil {
		return nil, err
	}
	if n < 1 || int64(len(a)-1) < n {
		return nil, argument.ErrSyntax
	}
	in := &operands{sets: make([]*state.Value, n)}
	for i := range in.sets {
		v := s.DB.Find(a[1+i])
		if v != nil && v.Type != record.ZSet && v.Type != record.Set {
			return nil, argument.ErrWrongType
		}
		in.sets[i] = v
	}
	unknown := func(arg []byte) error { return s.Option(name(command), arg) }
	return in, in.Read(a[1+n:], int(n), argument.Is(command, "ZDIFFSTORE"), true, unknown)
}

// cmdZstore is ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE: op fills out from the sources.
func cmdZstore(op func(out *state.Value, in *operands)) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		in, err := readOperands(s, a[0], a[2:])
		if err != nil {
			return err
		}
		out := s.DB.Make(record.ZSet)
		op(out, in)
		s.DB.Store(a[1], out)
		return nil
	}
}

// bySize returns the sources in the order of servers, the smallest first: sums of floats depend on it.
func (in *operands) bySize() []int {
	order := make([]int, len(in.sets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(in.sets[i].Len(), in.sets[j].Len()) })
	return order
}

func zsetUnion(out *state.Value, in *operands) {
	for _, i := range in.bySize() {
		each(in.sets[i], func(member []byte, score float64) bool {
			score = in.Score(i, score)
			if old, ok := out.Score(member); ok {
				score = in.Aggregate(old, score)
			}
			out.SetScore(member, score)
			return true
		})
	}
}

func zsetInter(out *state.Value, in *operands) {
	order := in.bySize()
	each(in.sets[order[0]], func(member []byte, score float64) bool {
		score = in.Score(order[0], score)
		for _, i := range order[1:] {
			other, ok := scoreIn(in.sets[i], member)
			if !ok {
				return true
			}
			score = in.Aggregate(score, in.Score(i, other))
		}
		out.SetScore(member, score)
		return true
	})
}

func zsetDiff(out *state.Value, in *operands) {
	each(in.sets[0], func(member []byte, score float64) bool {
		for _, set := range in.sets[1:] {
			if _, ok := scoreIn(set, member); ok {
				return true
			}
		}
		out.SetScore(member, score)
		return true
	})
}

func cmdZrangestore(s *state.Server, a [][]byte) error {
	r := syntax.Range{Stores: true}
	if err := r.Read(a[3:], func(arg []byte) error { return s.Option("ZRANGESTORE", arg) }); err != nil {
		return err
	}
	v, err := s.Find(a[2], record.ZSet)
	if err == nil && r.By == syntax.ByLex {
		err = oneScore(v)
	}
	if err != nil {
		return err
	}
	out := s.DB.Make(record.ZSet)
	i := int64(0)
	from, to := r.Window(v.Len())
	v.Ranked(r.Rev, func(x state.Scored) bool {
		if !r.Has(x.Member, x.Score) {
			return true
		}
		if i++; i > from && i <= to {
			exact, _ := v.Score(x.Member)
			out.SetScore(x.Member, exact)
		}
		return i < to
	})
	s.DB.Store(a[1], out)
	return nil
}
