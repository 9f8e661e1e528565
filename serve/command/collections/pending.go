package collections

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// pendingOptions holds the options of the long form of XPENDING.
type pendingOptions struct {
	long     bool
	idle     int64
	count    int64
	r        interval
	consumer []byte
}

func (o *pendingOptions) read(args [][]byte) (err error) {
	if len(args) == 0 {
		return nil
	}
	if len(args) < 3 || len(args) > 6 {
		return argument.ErrSyntax
	}
	o.long = true
	if argument.Is(args[0], "IDLE") {
		if o.idle, err = argument.ParseInt(args[1]); err != nil {
			return err
		}
		if len(args) < 5 {
			return argument.ErrSyntax
		}
		args = args[2:]
	}
	if o.count, err = argument.ParseInt(args[2]); err != nil {
		return err
	}
	o.count = max(o.count, 0)
	if o.r, err = parseInterval(args[0], args[1]); err != nil {
		return err
	}
	if len(args) > 3 { // Redis ignores further ones
		o.consumer = args[3]
	}
	return nil
}

func xpending(c *command.Call) error {
	var o pendingOptions
	if err := o.read(c.Args[3:]); err != nil {
		return err
	}
	s, err := info(c, c.Args[1], nil)
	if err != nil {
		return err
	}
	if s == nil || s.group(c.Args[2]) == nil {
		return argument.Refuse(fmt.Sprintf("NOGROUP No such key '%s' or consumer group '%s'", c.Args[1], c.Args[2]))
	}
	if g := s.group(c.Args[2]); o.long {
		return pendingRange(c, g, &o)
	} else {
		pendingSum(c, g)
	}
	return nil
}

// pendingSum replies with the number of pending entries, their ends and consumers.
func pendingSum(c *command.Call, g *group) {
	c.W.Header(resp.Array, 4)
	c.W.Int(g.pending)
	if g.pending == 0 {
		c.W.Null()
		c.W.Null()
		c.W.NullArray()
		return
	}
	c.W.Values(g.least.String(), g.most.String())
	with := slices.DeleteFunc(slices.Clone(g.consumers), func(of *consumer) bool { return of.pending == 0 })
	slices.SortFunc(with, func(a, b *consumer) int { return cmp.Compare(a.name, b.name) })
	c.W.Header(resp.Array, int64(len(with)))
	for _, of := range with {
		c.W.List(of.name, fmt.Sprint(of.pending))
	}
}

// pendingRange replies with the pending entries of a range.
func pendingRange(c *command.Call, g *group, o *pendingOptions) error {
	var of *consumer
	if o.consumer != nil {
		if of = g.consumer(o.consumer); of == nil {
			c.W.Header(resp.Array, 0)
			return nil
		}
	}
	now := c.Server.Time().UnixMilli()
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		err = pendingOf(c, c.Args[1], g, of, math.MaxInt64, func(p *record.PendingEntry) {
			idle := max(now-p.DeliveredMS, 0)
			if id := idOf(p.ID); n == o.count || !o.r.has(id) || o.idle > 0 && idle < o.idle {
				return
			}
			n++
			c.W.List(idOf(p.ID).String(), p.Consumer, idle, p.Count)
		})
		return n, err
	})
}
