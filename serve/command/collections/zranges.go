package collections

import (
	"errors"
	"math"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/syntax"
	"kvferry/serve/command"
)

// soughtShare is the part of a sorted set, and soughtLeast the number of members, that are read in the order of scores at
// most: that takes a seek for each.
const (
	soughtShare = 64
	soughtLeast = 512
)

// fromScore calls f with the members of a sorted set until it returns false: ordered by score, at least from one on, if
// the source has rows for that and few are read; else with all of them, after begin.
func fromScore(c *command.Call, key []byte, score float64, begin func(), f func(e *record.Element, ordered bool) bool) error {
	n, many := int64(0), false
	start := &record.Start{ByScore: true, Score: score}
	_, err := c.Read(key, command.Reading{Type: record.ZSet, Start: start}, func(h *record.Header, e *record.Element) bool {
		n++
		many = h.Sought && n > max(soughtLeast, h.Len/soughtShare)
		return !many && f(e, h.Sought)
	})
	if err != nil || !many {
		return err
	}
	begin()
	_, err = c.Walk(key, record.ZSet, func(e *record.Element) bool { return f(e, false) })
	return err
}

// zrangeOf makes ZRANGE, or a command whose name determines the form of the range.
func zrangeOf(r syntax.Range) func(*command.Call) error {
	return func(c *command.Call) error {
		r := r
		if err := r.Read(c.Args[2:], unknownOption); err != nil {
			return err
		}
		return zrange(c, &r)
	}
}

// unknownOption returns the error for an argument that is not an option.
func unknownOption([]byte) error { return argument.ErrSyntax }

// zrange sorts the members of the range and applies the limit.
func zrange(c *command.Call, o *syntax.Range) (err error) {
	r := newRank(c, o.Rev)
	defer command.CloseAll(&err, r)
	var failed error
	add := func(e *record.Element) bool {
		if o.Has(e.Name, e.Score) {
			failed = r.add(e.Name, e.Score)
		}
		return failed == nil && c.Live()
	}
	last := lastOf(o)
	switch least, most := scoreBounds(o); {
	case o.By == syntax.ByLex:
		err = inLex(c, c.Args[1], o.Bounds, add)
	case o.By == syntax.ByScore || last >= 0:
		highest := math.Inf(-1) // of those that the reply may need
		err = fromScore(c, c.Args[1], least, r.Reset, func(e *record.Element, ordered bool) bool {
			if !add(e) || !ordered {
				return failed == nil && c.Live()
			}
			if last < 0 || int64(r.Len()) <= last {
				highest = max(highest, e.Score)
				return e.Score <= most+record.ScoreSlack
			}
			return e.Score <= min(highest, most)+record.ScoreSlack
		})
	default:
		_, err = c.Walk(c.Args[1], record.ZSet, add)
	}
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	from, to := o.Window(int64(r.Len()))
	return ranked(c, r, o.Scores, from, to)
}

// scoreBounds returns the least and the greatest score of the range.
func scoreBounds(o *syntax.Range) (least, most float64) {
	if o.By != syntax.ByScore {
		return math.Inf(-1), math.Inf(1)
	}
	return o.Bounds.Min, o.Bounds.Max
}

// lastOf returns the number of members in the range, from its start, that the reply needs at most; -1: all.
func lastOf(o *syntax.Range) int64 {
	switch {
	case o.Rev:
	case o.By == syntax.ByRank && o.Start >= 0 && o.End >= 0:
		return min(o.End, math.MaxInt64-1) + 1
	case o.By == syntax.ByScore && o.Offset >= 0 && o.Limit >= 0 && o.Limit <= math.MaxInt64-o.Offset:
		return o.Offset + o.Limit
	}
	return -1
}
