package collections

import (
	"bytes"
	"errors"
	"math"

	"kvferry/internal/shared/argument"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

var listCommands = command.Functions{
	"llen": command.LengthOf(record.List), "lrange": lrange, "lindex": lindex, "lpos": lpos,
}

// span converts the ends of a range to indexes, from <= i < to. It counts the elements only if an end counts from the
// last one.
func span(c *command.Call, key []byte, t record.Type, start, end int64) (from, to int64, err error) {
	n := int64(math.MaxInt64)
	if start < 0 || end < 0 {
		if n, err = c.Length(key, t); err != nil {
			return 0, 0, err
		}
	}
	from, to = argument.Span(start, end, n)
	return from, to, nil
}

func lrange(c *command.Call) error {
	ends, err := c.Ints(2, 2)
	if err != nil {
		return err
	}
	from, to, err := span(c, c.Args[1], record.List, ends[0], ends[1])
	if err != nil {
		return err
	}
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		if ends[1] < 0 { // the length is known
			c.W.Expect(max(to-from, 0))
		}
		_, err = c.Read(c.Args[1], command.Reading{Type: record.List, Start: &record.Start{Index: min(from, to)}}, func(_ *record.Header, e *record.Element) bool {
			if from+n < to {
				n++
				c.W.Bulk(e.Value)
			}
			return from+n < to && c.Live()
		})
		return n, err
	})
}

func lindex(c *command.Call) error {
	at, err := argument.ParseInt(c.Args[2])
	if err != nil { // Redis looks at the key first
		there, wrong := c.Walk(c.Args[1], record.List, func(*record.Element) bool { return false })
		switch {
		case wrong != nil:
			return wrong
		case there:
			return err
		}
		c.W.Null()
		return nil
	}
	if at < 0 {
		n, err := c.Length(c.Args[1], record.List)
		if err != nil {
			return err
		}
		if at += n; at < 0 {
			c.W.Null()
			return nil
		}
	}
	found := false
	how := command.Reading{Type: record.List, Start: &record.Start{Index: at}, Only: true}
	_, err = c.Read(c.Args[1], how, func(_ *record.Header, e *record.Element) bool {
		c.W.Bulk(e.Value)
		found = true
		return false
	})
	if err == nil && !found {
		c.W.Null()
	}
	return err
}

// lposOptions holds the options of LPOS.
type lposOptions struct {
	rank, count, maxLen int64
	counted             bool
}

func (o *lposOptions) read(args [][]byte) (err error) {
	o.rank = 1
	for i := 0; i < len(args); i += 2 {
		if i+1 == len(args) {
			return argument.ErrSyntax
		}
		n, err := argument.ParseInt(args[i+1])
		switch {
		case argument.Is(args[i], "RANK"):
			if o.rank = n; err == nil && (n == 0 || n == math.MinInt64) {
				if n == 0 {
					err = argument.Refuse("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
				} else {
					err = argument.Refuse("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
				}
			}
		case argument.Is(args[i], "COUNT"):
			if o.count, o.counted = n, true; err != nil || n < 0 {
				err = argument.Refuse("ERR COUNT can't be negative")
			}
		case argument.Is(args[i], "MAXLEN"):
			if o.maxLen = n; err != nil || n < 0 {
				err = argument.Refuse("ERR MAXLEN can't be negative")
			}
		default:
			err = argument.ErrSyntax
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// positions calls f with the positions of matches, from the end that the rank names, until f returns false.
func positions(c *command.Call, o *lposOptions, f func(at int64) bool) error {
	key, value := c.Args[1], c.Args[2]
	if o.rank > 0 {
		i, seen := int64(0), int64(0)
		_, err := c.Walk(key, record.List, func(e *record.Element) bool {
			if o.maxLen > 0 && i >= o.maxLen {
				return false
			}
			i++
			if bytes.Equal(e.Value, value) {
				if seen++; seen >= o.rank {
					return f(i-1) && c.Live()
				}
			}
			return true
		})
		return err
	}
	return backPositions(c, o, key, value, f)
}

// backPositions sorts the matches from the last one.
func backPositions(c *command.Call, o *lposOptions, key, value []byte, f func(at int64) bool) (err error) {
	n, err := c.Length(key, record.List)
	if err != nil {
		return err
	}
	s := extsort.New(c.Sorting())
	defer func() { err = errors.Join(err, s.Close()) }()
	i := int64(0)
	_, err = c.Walk(key, record.List, func(e *record.Element) bool {
		if (o.maxLen == 0 || i >= n-o.maxLen) && bytes.Equal(e.Value, value) {
			err = s.Add(math.MaxUint64-uint64(i), nil, nil)
		}
		i++
		return err == nil && c.Live()
	})
	if err != nil {
		return err
	}
	seen := int64(0)
	stop := errors.New("enough")
	err = s.Each(func(prefix uint64, _, _ []byte) error {
		if seen++; seen >= -o.rank && !f(int64(math.MaxUint64-prefix)) {
			return stop
		}
		return nil
	})
	if err == stop {
		err = nil
	}
	return err
}

func lpos(c *command.Call) error {
	var o lposOptions
	if err := o.read(c.Args[3:]); err != nil {
		return err
	}
	if o.counted {
		return c.W.Aggregate(resp.Array, func() (n int64, err error) {
			err = positions(c, &o, func(at int64) bool {
				n++
				c.W.Int(at)
				return n != o.count
			})
			return n, err
		})
	}
	found := false
	err := positions(c, &o, func(at int64) bool {
		found = true
		c.W.Int(at)
		return false
	})
	if err == nil && !found {
		c.W.Null()
	}
	return err
}
