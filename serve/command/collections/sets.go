package collections

import (
	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

var setCommands = command.Functions{
	"scard": command.LengthOf(record.Set), "sismember": sismember, "smismember": smismember, "smembers": smembers,
	"srandmember": randomOf(record.Set), "sscan": command.ScanOf(record.Set), "sinter": combineSets(inter),
	"sunion": combineSets(union), "sdiff": combineSets(diff), "sintercard": sintercard,
}

// members reports which of some members a set has.
func members(c *command.Call, key []byte, names [][]byte) (map[string]bool, error) {
	has := make(map[string]bool, len(names))
	for _, name := range names {
		has[string(name)] = false
	}
	err := c.Find(key, record.Set, names, func(e *record.Element) bool {
		has[string(e.Name)] = true
		return true
	})
	return has, err
}

func sismember(c *command.Call) error {
	has, err := members(c, c.Args[1], c.Args[2:])
	if err == nil {
		c.W.Int(command.Number(has[string(c.Args[2])]))
	}
	return err
}

func smismember(c *command.Call) error {
	has, err := members(c, c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.W.Header(resp.Array, int64(len(c.Args)-2))
	for _, name := range c.Args[2:] {
		c.W.Int(command.Number(has[string(name)]))
	}
	return nil
}

func smembers(c *command.Call) error {
	return c.Whole(resp.Set, record.Set, func(e *record.Element) { c.W.Bulk(e.Name) })
}

// combineSets makes a command that combines sets. Members come in the order of their bytes.
func combineSets(how combination) func(*command.Call) error {
	return func(c *command.Call) error {
		return c.W.Aggregate(resp.Set, func() (n int64, err error) {
			err = combine(c, c.Args[1:], record.Of(record.Set), how, func(m *merged) bool {
				n++
				c.W.Bulk(m.name)
				return c.Live()
			})
			return n, err
		})
	}
}

// numkeys parses the number of keys at c.Args[at], and returns the keys and the arguments that follow.
func numkeys(c *command.Call, at int) (keys, rest [][]byte, err error) {
	n, err := argument.ParseInt(c.Args[at])
	if err != nil || n < 1 {
		return nil, nil, argument.Refuse("ERR numkeys should be greater than 0")
	}
	if n > int64(len(c.Args)-at-1) {
		return nil, nil, argument.Refuse("ERR Number of keys can't be greater than number of args")
	}
	return c.Args[at+1 : at+1+int(n)], c.Args[at+1+int(n):], nil
}

// limitOption parses the LIMIT option of SINTERCARD and ZINTERCARD; 0: no limit.
func limitOption(rest [][]byte) (limit int64, err error) {
	for i := 0; i < len(rest); i += 2 {
		if !argument.Is(rest[i], "LIMIT") || i+1 == len(rest) {
			return 0, argument.ErrSyntax
		}
		if limit, err = argument.ParseInt(rest[i+1]); err != nil || limit < 0 {
			return 0, argument.Refuse("ERR LIMIT can't be negative")
		}
	}
	return limit, nil
}

func sintercard(c *command.Call) error {
	keys, rest, err := numkeys(c, 1)
	if err != nil {
		return err
	}
	limit, err := limitOption(rest)
	if err != nil {
		return err
	}
	return interCard(c, keys, record.Of(record.Set), limit)
}

// interCard counts the members of an intersection.
func interCard(c *command.Call, keys [][]byte, types record.TypeSet, limit int64) error {
	n := int64(0)
	err := combine(c, keys, types, inter, func(*merged) bool {
		n++
		return n != limit
	})
	if err == nil {
		c.W.Int(n)
	}
	return err
}
