package command

import (
	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/resp"
)

func hashCommands() []Command {
	return []Command{
		{"hget", 3, "readonly fast", 1, 1, 1, hget},
		{"hmget", -3, "readonly fast", 1, 1, 1, hmget},
		{"hgetall", 2, "readonly", 1, 1, 1, hashParts(resp.Map, true, true)},
		{"hkeys", 2, "readonly", 1, 1, 1, hashParts(resp.Array, true, false)},
		{"hvals", 2, "readonly", 1, 1, 1, hashParts(resp.Array, false, true)},
		{"hlen", 2, "readonly fast", 1, 1, 1, lengthOf(record.Hash)},
		{"hexists", 3, "readonly fast", 1, 1, 1, hexists},
		{"hstrlen", 3, "readonly fast", 1, 1, 1, hstrlen},
		{"hrandfield", -2, "readonly", 1, 1, 1, randomOf(record.Hash)},
		{"hscan", -3, "readonly", 1, 1, 1, scanOf(record.Hash)},
		{"httl", -5, "readonly fast", 1, 1, 1, fieldExpiry(1000, true)},
		{"hpttl", -5, "readonly fast", 1, 1, 1, fieldExpiry(1, true)},
		{"hexpiretime", -5, "readonly fast", 1, 1, 1, fieldExpiry(1000, false)},
		{"hpexpiretime", -5, "readonly fast", 1, 1, 1, fieldExpiry(1, false)},
	}
}

// field calls f with a field of a hash; nil if it does not exist.
func (c *Call) field(key, name []byte, f func(e *record.Element)) error {
	found := false
	err := c.find(key, record.Hash, [][]byte{name}, func(e *record.Element) bool {
		found = true
		f(e)
		return false
	})
	if err == nil && !found {
		f(nil)
	}
	return err
}

func hget(c *Call) error {
	return c.field(c.Args[1], c.Args[2], func(e *record.Element) {
		if e == nil {
			c.W.Null()
		} else {
			c.W.Bulk(e.Value)
		}
	})
}

func hexists(c *Call) error {
	return c.field(c.Args[1], c.Args[2], func(e *record.Element) { c.W.Int(number(e != nil)) })
}

func hstrlen(c *Call) error {
	return c.field(c.Args[1], c.Args[2], func(e *record.Element) {
		if e == nil {
			e = new(record.Element)
		}
		c.W.Int(int64(len(e.Value)))
	})
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// hashParts makes a command that replies with fields, values or both.
func hashParts(kind resp.Kind, names, values bool) func(*Call) error {
	return func(c *Call) error {
		return c.W.Aggregate(kind, func() (n int64, err error) {
			_, err = c.walk(c.Args[1], record.Hash, func(e *record.Element) bool {
				n++
				if names {
					c.W.Bulk(e.Name)
				}
				if values {
					c.W.Bulk(e.Value)
				}
				return c.live()
			})
			return n, err
		})
	}
}

// maxCollected is the size of values that a command collects in one pass. Beyond it, each takes a pass of its own.
const maxCollected = 1 << 20

func hmget(c *Call) error {
	names := c.Args[2:]
	values, ok, err := c.collect(c.Args[1], names)
	if err != nil {
		return err
	}
	if !ok {
		return c.W.Aggregate(resp.Array, func() (int64, error) {
			for _, name := range names {
				if err := c.field(c.Args[1], name, func(e *record.Element) { c.bulkOf(e) }); err != nil {
					return 0, err
				}
			}
			return int64(len(names)), nil
		})
	}
	c.W.Header(resp.Array, int64(len(names)))
	for _, name := range names {
		c.bulk(values[string(name)])
	}
	return nil
}

func (c *Call) bulkOf(e *record.Element) {
	if e == nil {
		c.W.Null()
	} else {
		c.W.Bulk(e.Value)
	}
}

// collect returns the values of some fields; false if they are too large.
func (c *Call) collect(key []byte, names [][]byte) (values map[string][]byte, ok bool, err error) {
	values = make(map[string][]byte, len(names))
	for _, name := range names {
		values[string(name)] = nil
	}
	size := 0
	err = c.find(key, record.Hash, names, func(e *record.Element) bool {
		size += len(e.Value)
		values[string(e.Name)] = append([]byte{}, e.Value...)
		return size <= maxCollected
	})
	return values, size <= maxCollected, err
}

// fieldExpiry makes a command that replies with the expiry of fields, in units of some milliseconds.
func fieldExpiry(unit int64, left bool) func(*Call) error {
	return func(c *Call) error {
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
		if err := c.find(c.Args[1], record.Hash, c.Args[4:], func(e *record.Element) bool {
			expiry[string(e.Name)] = c.expiry(e.ExpireMS, unit, left)
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

// expiry returns an expiry, or the remaining time, in units of unit milliseconds; -1: never.
func (c *Call) expiry(ms, unit int64, left bool) int64 {
	if ms == 0 {
		return -1
	}
	if left {
		return (max(ms-c.Server.Now.UnixMilli(), 0) + unit/2) / unit
	}
	return (ms + unit/2) / unit
}
