package syntax

import (
	"bytes"
	"math"

	"kvferry/internal/shared/argument"
)

// Combination holds the options of ZUNION, ZINTER and ZDIFF, and of the commands that store their results.
type Combination struct {
	Weights    []float64 // of the sets
	Aggregate  func(a, b float64) float64
	WithScores bool
}

// Read parses the options of a command on n sets. simple is set for a difference, which has no weights, and stores for a
// command that stores its result. unknown returns the error for any other argument.
func (o *Combination) Read(a [][]byte, n int, simple, stores bool, unknown func(arg []byte) error) (err error) {
	o.Aggregate, o.Weights = sum, make([]float64, n)
	for i := range o.Weights {
		o.Weights[i] = 1
	}
	for i := 0; i < len(a); i++ {
		switch {
		case argument.Is(a[i], "WEIGHTS") && !simple && i+n < len(a):
			for k := range o.Weights {
				i++
				if o.Weights[k], err = argument.ParseFloat(a[i]); err != nil {
					return argument.Refuse("ERR weight value is not a float")
				}
			}
		case argument.Is(a[i], "AGGREGATE") && !simple && i+1 < len(a):
			i++
			if o.Aggregate = aggregates[string(bytes.ToUpper(a[i]))]; o.Aggregate == nil {
				return argument.ErrSyntax
			}
		case argument.Is(a[i], "WITHSCORES") && !stores:
			o.WithScores = true
		default:
			return unknown(a[i])
		}
	}
	return nil
}

var aggregates = map[string]func(a, b float64) float64{"SUM": sum, "MIN": math.Min, "MAX": math.Max}

func sum(a, b float64) float64 { return number(a + b) }

// number replaces NaN, the result of inf - inf or 0 * inf, by 0.
func number(f float64) float64 {
	if f != f {
		return 0
	}
	return f
}

// Score returns the score of a member in a set with its weight.
func (o *Combination) Score(set int, score float64) float64 { return number(score * o.Weights[set]) }

// The forms of a range.
const (
	ByRank = iota
	ByScore
	ByLex
)

// Range is the range of ZRANGE and related commands.
type Range struct {
	Fixed         bool // the name of the command determines By and Rev; else options do
	Stores        bool // it is ZRANGESTORE
	By            int
	Rev, Scores   bool
	Offset, Limit int64
	Bounds        *argument.Bounds
	Start, End    int64
}

// Read parses both ends of a range and the options after them. unknown returns the error for any other argument.
func (r *Range) Read(a [][]byte, unknown func(arg []byte) error) (err error) {
	r.Limit = -1
	for i := 2; i < len(a); i++ {
		switch {
		case argument.Is(a[i], "WITHSCORES") && !r.Stores:
			r.Scores = true
		case argument.Is(a[i], "LIMIT") && i+2 < len(a):
			n, err := argument.ParseInts(a[i+1], a[i+2])
			if err != nil {
				return err
			}
			r.Offset, r.Limit = n[0], n[1]
			i += 2
		case argument.Is(a[i], "REV") && !r.Fixed && !r.Rev:
			r.Rev = true
		case argument.Is(a[i], "BYLEX") && !r.Fixed && r.By == ByRank:
			r.By = ByLex
		case argument.Is(a[i], "BYSCORE") && !r.Fixed && r.By == ByRank:
			r.By = ByScore
		default:
			return unknown(a[i])
		}
	}
	switch {
	case r.Limit != -1 && r.By == ByRank:
		return argument.Refuse("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	case r.Scores && r.By == ByLex:
		return argument.Refuse("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	}
	return r.ends(a[0], a[1])
}

// ends parses the ends of the range, of which the higher one is first for ranges of scores and members from the end.
func (r *Range) ends(first, second []byte) (err error) {
	if r.Rev && r.By != ByRank {
		first, second = second, first
	}
	switch r.By {
	case ByScore:
		r.Bounds, err = argument.ParseScores(first, second)
	case ByLex:
		r.Bounds, err = argument.ParseMembers(first, second)
	default:
		var n []int64
		if n, err = argument.ParseInts(first, second); err == nil {
			r.Start, r.End = n[0], n[1]
		}
	}
	return err
}

// Has reports whether a member is within the bounds.
func (r *Range) Has(member []byte, score float64) bool {
	return r.By == ByRank || r.By == ByScore && r.Bounds.HasScore(score) || r.By == ByLex && r.Bounds.HasMember(member)
}

// Window returns which of the members within the bounds belong to the result, from < number <= to, counted from 1 in the order
// of the range. n is the number of all members.
func (r *Range) Window(n int64) (from, to int64) {
	switch {
	case r.By == ByRank:
		return argument.Span(r.Start, r.End, n)
	case r.Offset < 0:
		return 0, 0
	case r.Limit >= 0 && r.Limit < n:
		return r.Offset, min(r.Offset, n) + r.Limit
	}
	return r.Offset, n
}
