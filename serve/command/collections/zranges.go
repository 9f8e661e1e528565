package collections

import (
	"errors"
	"math"

	"kvferry/internal/shared/argument"
	"kvferry/record"
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

// How a range is given.
const (
	byRank = iota
	byScore
	byLex
)

// zrangeOptions holds the options of ZRANGE and related commands.
type zrangeOptions struct {
	auto          bool // ZRANGE: options choose the rest
	by            int
	rev, scores   bool
	offset, limit int64
	bounds        *argument.Bounds
	start, end    int64
}

func (o *zrangeOptions) read(args [][]byte) (err error) {
	o.limit = -1
	given := byRank
	for i := 0; i < len(args); i++ {
		switch {
		case argument.Is(args[i], "WITHSCORES"):
			o.scores = true
		case argument.Is(args[i], "LIMIT") && i+2 < len(args):
			n, err := argument.ParseInts(args[i+1], args[i+2])
			if err != nil {
				return err
			}
			o.offset, o.limit = n[0], n[1]
			i += 2
		case o.auto && !o.rev && argument.Is(args[i], "REV"):
			o.rev = true
		case o.auto && given == byRank && argument.Is(args[i], "BYLEX"):
			given = byLex
		case o.auto && given == byRank && argument.Is(args[i], "BYSCORE"):
			given = byScore
		default:
			return argument.ErrSyntax
		}
	}
	if o.auto {
		o.by = given
	}
	if o.limit != -1 && o.by == byRank {
		return argument.Refuse("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	}
	if o.scores && o.by == byLex {
		return argument.Refuse("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	}
	return nil
}

// ends parses the ends of the range, of which the higher one is first for ranges of scores and members from the end.
func (o *zrangeOptions) ends(first, second []byte) (err error) {
	if o.rev && o.by != byRank {
		first, second = second, first
	}
	switch o.by {
	case byScore:
		o.bounds, err = argument.ParseScores(first, second)
	case byLex:
		o.bounds, err = argument.ParseMembers(first, second)
	default:
		var n []int64
		if n, err = argument.ParseInts(first, second); err == nil {
			o.start, o.end = n[0], n[1]
		}
	}
	return err
}

func zrangeOf(o zrangeOptions) func(*command.Call) error {
	return func(c *command.Call) error {
		o := o
		if err := o.read(c.Args[4:]); err != nil {
			return err
		}
		if err := o.ends(c.Args[2], c.Args[3]); err != nil {
			return err
		}
		return zrange(c, &o)
	}
}

// zrange sorts the members of the range and applies the limit.
func zrange(c *command.Call, o *zrangeOptions) (err error) {
	r := newRank(c, o.rev)
	defer command.CloseAll(&err, r)
	var failed error
	add := func(e *record.Element) bool {
		if o.by != byScore || o.bounds.HasScore(e.Score) {
			failed = r.add(e.Name, e.Score)
		}
		return failed == nil && c.Live()
	}
	last := o.last()
	switch least, most := o.scoreBounds(); {
	case o.by == byLex:
		err = inLex(c, c.Args[1], o.bounds, add)
	case o.by == byScore || last >= 0:
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
	return ranked(c, r, o.scores, func() func() (take, more bool) { return o.window(int64(r.Len())) })
}

// scoreBounds returns the least and the greatest score of the range.
func (o *zrangeOptions) scoreBounds() (least, most float64) {
	if o.by != byScore {
		return math.Inf(-1), math.Inf(1)
	}
	return o.bounds.Min, o.bounds.Max
}

// last returns the number of members in the range, from its start, that the reply needs at most; -1: all.
func (o *zrangeOptions) last() int64 {
	switch {
	case o.rev:
	case o.by == byRank && o.start >= 0 && o.end >= 0:
		return min(o.end, math.MaxInt64-1) + 1
	case o.by == byScore && o.offset >= 0 && o.limit >= 0 && o.limit <= math.MaxInt64-o.offset:
		return o.offset + o.limit
	}
	return -1
}

// window returns a function that is called for each member in turn. take: it belongs to the reply; more: later ones may.
func (o *zrangeOptions) window(n int64) func() (take, more bool) {
	from, to := int64(0), n
	switch {
	case o.by == byRank:
		from, to = argument.Span(o.start, o.end, n)
	case o.offset < 0:
		to = 0
	default:
		from = o.offset
		if o.limit >= 0 && o.limit < n {
			to = min(from, n) + o.limit
		}
	}
	i := int64(0)
	return func() (bool, bool) {
		i++
		return i > from && i <= to, i < to
	}
}
