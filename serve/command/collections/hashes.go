// Package collections has the commands on hashes, lists, sets, sorted sets and streams.
package collections

import (
	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// Commands returns the commands on collections.
func Commands() []command.Functions {
	return []command.Functions{hashCommands, listCommands, setCommands, zsetCommands, geoCommands, sortCommands, streamCommands}
}

var hashCommands = command.Functions{
	"hget": hget, "hmget": hmget, "hgetall": hashParts(resp.Map, true, true), "hkeys": hashParts(resp.Array, true, false),
	"hvals": hashParts(resp.Array, false, true), "hlen": command.LengthOf(record.Hash), "hexists": hexists, "hstrlen": hstrlen,
	"hrandfield": randomOf(record.Hash), "hscan": command.ScanOf(record.Hash), "httl": fieldExpiry(1000, true),
	"hpttl": fieldExpiry(1, true), "hexpiretime": fieldExpiry(1000, false), "hpexpiretime": fieldExpiry(1, false),
}

// field calls f with a field of a hash; nil if it does not exist.
func field(c *command.Call, key, name []byte, f func(e *record.Element)) error {
	found := false
	err := c.Find(key, record.Hash, [][]byte{name}, func(e *record.Element) bool {
		found = true
		f(e)
		return false
	})
	if err == nil && !found {
		f(nil)
	}
	return err
}

func hget(c *command.Call) error {
	return field(c, c.Args[1], c.Args[2], func(e *record.Element) {
		if e == nil {
			c.W.Null()
		} else {
			c.W.Bulk(e.Value)
		}
	})
}

func hexists(c *command.Call) error {
	return field(c, c.Args[1], c.Args[2], func(e *record.Element) { c.W.Int(command.Number(e != nil)) })
}

func hstrlen(c *command.Call) error {
	return field(c, c.Args[1], c.Args[2], func(e *record.Element) {
		if e == nil {
			e = new(record.Element)
		}
		c.W.Int(int64(len(e.Value)))
	})
}

// hashParts makes a command that replies with fields, values or both.
func hashParts(kind resp.Kind, names, values bool) func(*command.Call) error {
	return func(c *command.Call) error {
		return c.Whole(kind, record.Hash, func(e *record.Element) {
			if names {
				c.W.Bulk(e.Name)
			}
			if values {
				c.W.Bulk(e.Value)
			}
		})
	}
}

func hmget(c *command.Call) error {
	names := c.Args[2:]
	values, ok, err := collect(c, c.Args[1], names)
	if err != nil {
		return err
	}
	if !ok {
		return c.W.Aggregate(resp.Array, func() (int64, error) {
			for _, name := range names {
				if err := field(c, c.Args[1], name, func(e *record.Element) { bulkOf(c, e) }); err != nil {
					return 0, err
				}
			}
			return int64(len(names)), nil
		})
	}
	c.W.Header(resp.Array, int64(len(names)))
	for _, name := range names {
		c.Bulk(values[string(name)])
	}
	return nil
}

func bulkOf(c *command.Call, e *record.Element) {
	if e == nil {
		c.W.Null()
	} else {
		c.W.Bulk(e.Value)
	}
}

// collect returns the values of some fields; false if they are too large.
func collect(c *command.Call, key []byte, names [][]byte) (values map[string][]byte, ok bool, err error) {
	values = make(map[string][]byte, len(names))
	for _, name := range names {
		values[string(name)] = nil
	}
	size := 0
	err = c.Find(key, record.Hash, names, func(e *record.Element) bool {
		size += len(e.Value)
		values[string(e.Name)] = append([]byte{}, e.Value...)
		return size <= command.MaxCollected
	})
	return values, size <= command.MaxCollected, err
}

// fieldExpiry makes a command that replies with the expiry of fields, in units of some milliseconds.
func fieldExpiry(unit int64, left bool) func(*command.Call) error {
	return func(c *command.Call) error {
		if !argument.Is(c.Args[2], "FIELDS") {
			return argument.Refuse("ERR Mandatory argument FIELDS is missing or not at the right position")
		}
		n, err := argument.ParseInt(c.Args[3])
		if err != nil || n < 1 {
			return argument.Refuse("ERR Number of fields must be a positive integer")
		}
		if n != int64(len(c.Args)-4) {
			return argument.Refuse("ERR The `numfields` parameter must match the number of arguments")
		}
		expiry := make(map[string]int64, n)
		for _, name := range c.Args[4:] {
			expiry[string(name)] = -2
		}
		if err := c.Find(c.Args[1], record.Hash, c.Args[4:], func(e *record.Element) bool {
			expiry[string(e.Name)] = c.Expiry(e.ExpireMS, unit, unit-1, left)
			return true
		}); err != nil {
			return err
		}
		c.W.Header(resp.Array, n)
		for _, name := range c.Args[4:] {
			c.W.Int(expiry[string(name)])
		}
		return nil
	}
}
