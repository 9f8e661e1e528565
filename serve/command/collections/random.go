package collections

import (
	"math"
	"math/rand/v2"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// maxRandom is the number of elements that may be asked for with repetitions.
const maxRandom = 1 << 20

// randomOf makes SRANDMEMBER, HRANDFIELD or ZRANDMEMBER.
func randomOf(t record.Type) func(*command.Call) error {
	return func(c *command.Call) error {
		count, with := int64(1), false
		if len(c.Args) > 2 {
			n, err := argument.ParseInt(c.Args[2])
			if err != nil {
				return err
			}
			count = n
		}
		if most := 3 + int(command.Number(t != record.Set)); len(c.Args) > most {
			return argument.ErrSyntax
		}
		if len(c.Args) == 4 {
			if word := map[record.Type]string{record.Hash: "WITHVALUES", record.ZSet: "WITHSCORES"}[t]; !argument.Is(c.Args[3], word) {
				return argument.ErrSyntax
			}
			with = true
			if count < -math.MaxInt64/2 || count > math.MaxInt64/2 {
				return argument.Refuse("ERR value is out of range")
			}
		}
		if count < -maxRandom {
			return argument.Refuse("ERR kvferry repeats at most 1048576 elements")
		}
		n, err := c.Length(c.Args[1], t)
		if err != nil {
			return err
		}
		if len(c.Args) == 2 {
			return randomOne(c, t, n)
		}
		return randomSome(c, t, n, count, with)
	}
}

func randomOne(c *command.Call, t record.Type, n int64) error {
	if n == 0 {
		c.W.Null()
		return nil
	}
	at := rand.Int64N(n)
	_, err := c.Walk(c.Args[1], t, func(e *record.Element) bool {
		if at == 0 {
			c.W.Bulk(e.Name)
		}
		at--
		return at >= 0
	})
	return err
}

// randomSome replies with count of n elements, or -count with repetitions, in the order of the source.
func randomSome(c *command.Call, t record.Type, n, count int64, with bool) error {
	seed := rand.Uint64()
	emit := func(e *record.Element, values bool) {
		if with && c.W.Proto > 2 {
			c.W.Header(resp.Array, 2)
		}
		c.W.Bulk(e.Name)
		if !values {
			return
		}
		if t == record.ZSet {
			c.W.Double(e.Score)
		} else {
			c.W.Bulk(e.Value)
		}
	}
	return c.W.Aggregate(resp.Array, func() (total int64, err error) {
		take := pick(rand.New(rand.NewPCG(seed, 1)), n, count)
		_, err = c.Walk(c.Args[1], t, func(e *record.Element) bool {
			for k := take(); k > 0; k-- {
				emit(e, with)
				total++
			}
			return c.Live()
		})
		if with && c.W.Proto < 3 {
			total *= 2
		}
		return total, err
	})
}

// pick returns a function that is called once for each of n elements in turn and returns how often to take it.
func pick(r *rand.Rand, n, count int64) func() int64 {
	if n == 0 {
		return func() int64 { return 0 }
	}
	if count >= 0 { // of the left elements, count are still to be taken
		left := n
		return func() int64 {
			left--
			if count > 0 && r.Int64N(left+1) < count {
				count--
				return 1
			}
			return 0
		}
	}
	at := make([]int64, -count)
	for i := range at {
		at[i] = r.Int64N(n)
	}
	slices.Sort(at)
	i := int64(-1)
	return func() (k int64) {
		i++
		for len(at) > 0 && at[0] == i {
			at, k = at[1:], k+1
		}
		return k
	}
}
