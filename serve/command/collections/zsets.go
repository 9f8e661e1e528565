package collections

import (
	"bytes"
	"errors"
	"fmt"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/syntax"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

var zsetCommands = command.Functions{
	"zcard": command.LengthOf(record.ZSet), "zscore": zscore, "zmscore": zmscore, "zrank": zrank(false),
	"zrevrank": zrank(true), "zcount": zcount, "zlexcount": zlexcount, "zrange": zrangeOf(syntax.Range{}),
	"zrevrange": zrangeOf(syntax.Range{Fixed: true, Rev: true}), "zrangebyscore": zrangeOf(syntax.Range{Fixed: true, By: syntax.ByScore}),
	"zrevrangebyscore": zrangeOf(syntax.Range{Fixed: true, By: syntax.ByScore, Rev: true}), "zrangebylex": zrangeOf(syntax.Range{Fixed: true, By: syntax.ByLex}),
	"zrevrangebylex": zrangeOf(syntax.Range{Fixed: true, By: syntax.ByLex, Rev: true}), "zrandmember": randomOf(record.ZSet),
	"zscan": command.ScanOf(record.ZSet), "zinter": combineZsets(inter), "zunion": combineZsets(union),
	"zdiff": combineZsets(diff), "zintercard": zintercard,
}

// scores returns the scores of members; nil for missing ones.
func scores(c *command.Call, key []byte, names [][]byte) (map[string]*float64, error) {
	out := make(map[string]*float64, len(names))
	for _, name := range names {
		out[string(name)] = nil
	}
	err := c.Find(key, record.ZSet, names, func(e *record.Element) bool {
		score := e.Score
		out[string(e.Name)] = &score
		return true
	})
	return out, err
}

func score(c *command.Call, f *float64) {
	if f == nil {
		c.W.Null()
	} else {
		c.W.Double(*f)
	}
}

func zscore(c *command.Call) error {
	scores, err := scores(c, c.Args[1], c.Args[2:])
	if err == nil {
		score(c, scores[string(c.Args[2])])
	}
	return err
}

func zmscore(c *command.Call) error {
	scores, err := scores(c, c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.W.Header(resp.Array, int64(len(c.Args)-2))
	for _, name := range c.Args[2:] {
		score(c, scores[string(name)])
	}
	return nil
}

// zrank counts the members before one.
func zrank(back bool) func(*command.Call) error {
	return func(c *command.Call) error {
		member := c.Args[2]
		scores, err := scores(c, c.Args[1], c.Args[2:])
		if err != nil {
			return err
		}
		score := scores[string(member)]
		if score == nil {
			c.W.Null()
			return nil
		}
		n := int64(0)
		_, err = c.Walk(c.Args[1], record.ZSet, func(e *record.Element) bool {
			before := e.Score < *score || e.Score == *score && bytes.Compare(e.Name, member) < 0
			if same := e.Score == *score && bytes.Equal(e.Name, member); !same && before != back {
				n++
			}
			return true
		})
		if err == nil {
			c.W.Int(n)
		}
		return err
	}
}

func zcount(c *command.Call) error {
	b, err := argument.ParseScores(c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	n := int64(0)
	err = fromScore(c, c.Args[1], b.Min, func() { n = 0 }, func(e *record.Element, ordered bool) bool {
		n += command.Number(b.HasScore(e.Score))
		return !ordered || e.Score <= b.Max+record.ScoreSlack
	})
	if err == nil {
		c.W.Int(n)
	}
	return err
}

func zlexcount(c *command.Call) error {
	b, err := argument.ParseMembers(c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	n := int64(0)
	err = inLex(c, c.Args[1], b, func(*record.Element) bool {
		n++
		return true
	})
	if err == nil {
		c.W.Int(n)
	}
	return err
}

// inLex calls f with the members of a range of members, in the order of the source.
func inLex(c *command.Call, key []byte, b *argument.Bounds, f func(e *record.Element) bool) error {
	how := command.Reading{Type: record.ZSet}
	if least := b.Least(); len(least) > 0 {
		how.Start = &record.Start{Name: least, Bytewise: true}
	}
	_, err := c.Read(key, how, func(h *record.Header, e *record.Element) bool {
		if b.HasMember(e.Name) {
			return f(e)
		}
		return !(h.ByName && b.Below(e.Name))
	})
	return err
}

// ranked replies with the members of r from < number <= to, counted from 1, with or without scores.
func ranked(c *command.Call, r *rank, scores bool, from, to int64) error {
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		i := int64(0)
		err = r.each(func(member []byte, score float64) bool {
			if i++; i > from && i <= to {
				n++
				scored(c, member, score, scores)
			}
			return i < to && c.Live()
		})
		if scores && c.W.Proto < 3 {
			n *= 2
		}
		return n, err
	})
}

// scored writes a member, and its score if asked for: a pair in version 3.
func scored(c *command.Call, member []byte, score float64, with bool) {
	if with && c.W.Proto > 2 {
		c.W.Header(resp.Array, 2)
	}
	c.W.Bulk(member)
	if with {
		c.W.Double(score)
	}
}

// zkeys returns the keys whose number is the first argument, and the arguments that follow.
func zkeys(c *command.Call) (keys, rest [][]byte, err error) {
	n, err := argument.ParseInt(c.Args[1])
	switch {
	case err != nil:
		return nil, nil, err
	case n < 1:
		return nil, nil, argument.Refuse(fmt.Sprintf("ERR at least 1 input key is needed for '%s' command", command.Lower(c.Args[0])))
	case n > int64(len(c.Args)-2):
		return nil, nil, argument.ErrSyntax
	}
	return c.Args[2 : 2+n], c.Args[2+n:], nil
}

// zsets are the types that commands on sorted sets combine.
var zsets = record.Of(record.Set, record.ZSet)

// checked returns bad after it has looked at the keys, as Redis does.
func checked(c *command.Call, keys [][]byte, how combination, bad error) error {
	err := combine(c, keys, zsets, how, func(*merged) bool { return false })
	if err == nil {
		err = bad
	}
	return err
}

func zintercard(c *command.Call) error {
	keys, rest, err := zkeys(c)
	if err != nil {
		return err
	}
	limit, err := limitOption(rest)
	if err != nil {
		return checked(c, keys, inter, err)
	}
	return interCard(c, keys, zsets, limit)
}

func combineZsets(how combination) func(*command.Call) error {
	return func(c *command.Call) (err error) {
		keys, rest, err := zkeys(c)
		if err != nil {
			return err
		}
		var o syntax.Combination
		if bad := o.Read(rest, len(keys), how == diff, false, unknownOption); bad != nil { // Redis looks at the keys first
			return checked(c, keys, how, bad)
		}
		r := newRank(c, false)
		defer command.CloseAll(&err, r)
		if err := aggregate(c, r, keys, how, &o); err != nil {
			return err
		}
		return ranked(c, r, o.WithScores, 0, int64(r.Len()))
	}
}

// aggregate adds the members of the result to r.
func aggregate(c *command.Call, r *rank, keys [][]byte, how combination, o *syntax.Combination) error {
	var failed error
	err := combine(c, keys, zsets, how, func(m *merged) bool {
		total := o.Score(m.from[0], m.scores[0])
		for i, from := range m.from[1:] {
			total = o.Aggregate(total, o.Score(from, m.scores[i+1]))
		}
		failed = r.add(m.name, total)
		return failed == nil && c.Live()
	})
	return errors.Join(err, failed)
}
