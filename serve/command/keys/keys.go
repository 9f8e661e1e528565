// Package keys has the commands on keys of any type, on strings and on JSON documents.
package keys

import (
	"io"
	"math/rand/v2"

	"kvferry/inspect/redismem"
	"kvferry/internal/pass/filter"
	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// Commands returns the commands on keys, strings and documents.
func Commands() []command.Functions {
	return []command.Functions{keyCommands, stringCommands, bitCommands, documentCommands}
}

var keyCommands = command.Functions{
	"exists": exists, "touch": exists, "type": typeOf, "ttl": keyExpiry(1000, true), "pttl": keyExpiry(1, true),
	"expiretime": keyExpiry(1000, false), "pexpiretime": keyExpiry(1, false), "keys": keys, "scan": command.Scan,
	"randomkey": randomkey, "dbsize": dbsize, "dump": dump,
	"object|encoding": objectEncoding,
	"object|freq": ofKey(func(*command.Call) error {
		return argument.Refuse("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	}),
	"object|idletime": ofKey(func(c *command.Call) error { c.W.Int(0); return nil }),
	"object|refcount": ofKey(func(c *command.Call) error { c.W.Int(1); return nil }), "function|list": functionList,
	"function|dump": functionDump, "function|stats": functionStats, "function|kill": command.NotBusy,
	"memory|usage": memoryUsage, "memory|stats": command.MemoryStats,
	"memory|purge":  func(c *command.Call) error { c.W.OK(); return nil },
	"memory|doctor": func(c *command.Call) error { c.W.Verbatim("kvferry serves a dataset from disk"); return nil },
}

func exists(c *command.Call) error {
	n := int64(0)
	for _, key := range c.Args[1:] {
		if err := c.Header(key, func(h *record.Header) { n += command.Number(h != nil) }); err != nil {
			return err
		}
	}
	c.W.Int(n)
	return nil
}

func typeOf(c *command.Call) error {
	v, err := c.Open(c.Args[1], command.Reading{})
	if err != nil {
		return err
	}
	if v == nil {
		c.W.Simple("none")
		return nil
	}
	c.W.Simple(typeName(v))
	return v.Close()
}

// typeName is the name of a value's type: for a module's value the name that its server has for it.
func typeName(v command.Value) string {
	h := v.Header()
	if h.Type != record.Other {
		return command.TypeName(h.Type, "")
	}
	var one [1]record.Element
	if n, _ := v.Read(one[:]); n == 1 && len(one[0].Name) > 0 {
		return command.TypeName(h.Type, string(one[0].Name))
	}
	return h.Type.String()
}

func keyExpiry(unit int64, left bool) func(*command.Call) error {
	return func(c *command.Call) error {
		return c.Header(c.Args[1], func(h *record.Header) {
			if h == nil {
				c.W.Int(-2)
			} else {
				c.W.Int(c.Expiry(h.ExpireMS, unit, unit/2, left))
			}
		})
	}
}

func keys(c *command.Call) error {
	pattern := string(c.Args[1])
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		err = c.EachKey(func(h *record.Header) bool {
			if filter.Glob(pattern, h.Key) {
				n++
				c.W.Bulk(h.Key)
			}
			return c.Live()
		})
		return n, err
	})
}

func dbsize(c *command.Call) error {
	n, err := c.Server.Keys.Exact(c.Ctx, c.Client.DB)
	if err == nil {
		c.W.Int(n.Keys)
	}
	return err
}

// maxSkipped is how many keys RANDOMKEY passes at most.
const maxSkipped = 1000

// randomkey replies with one of the keys after a random place among the first bytes of keys.
func randomkey(c *command.Call) error {
	at := &command.Position{Key: []byte{byte(rand.Uint32()), byte(rand.Uint32())}}
	if rand.IntN(2) == 0 {
		at = nil
	}
	key, err := someKey(c, at)
	if err == nil && key == nil && at != nil {
		key, err = someKey(c, nil)
	}
	if err == nil {
		c.Bulk(key)
	}
	return err
}

// someKey returns one of the keys that follow a position.
func someKey(c *command.Call, after *command.Position) (key []byte, err error) {
	s, err := c.ScanFrom(c.Ctx, after)
	if err != nil {
		return nil, err
	}
	defer command.CloseAll(&err, s)
	for n := 1; n < maxSkipped; n++ {
		h, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if rand.IntN(n) == 0 {
			key = append([]byte{}, h.Key...)
		}
	}
	return key, nil
}

// ofKey makes a command that replies with null if its key does not exist.
func ofKey(run func(*command.Call) error) func(*command.Call) error {
	return func(c *command.Call) (err error) {
		there := false
		if err = c.Header(c.Args[2], func(h *record.Header) { there = h != nil }); err != nil {
			return err
		}
		if there {
			return run(c)
		}
		c.W.Null()
		return nil
	}
}

// objectEncoding replies with the encoding that a server would choose for a small value of the type.
func objectEncoding(c *command.Call) error {
	return c.Header(c.Args[2], func(h *record.Header) {
		if h == nil {
			c.W.Null()
			return
		}
		c.W.BulkString(map[record.Type]string{record.String: "raw", record.Hash: "hashtable", record.List: "quicklist", record.Set: "hashtable",
			record.ZSet: "skiplist", record.Stream: "stream", record.Other: "raw"}[h.Type])
	})
}

// memoryUsage replies with the bytes that the key would need in Redis 7.0, which are those that kvferry inspect estimates.
func memoryUsage(c *command.Call) error {
	if len(c.Args) > 3 {
		if len(c.Args) != 5 || !argument.Is(c.Args[3], "SAMPLES") {
			return argument.ErrSyntax
		}
		if _, err := argument.ParseInt(c.Args[4]); err != nil {
			return err
		}
	}
	var meter redismem.Meter
	began := false
	there, err := c.Read(c.Args[2], command.Reading{}, func(h *record.Header, e *record.Element) bool {
		if !began {
			meter.Begin(h)
			began = true
		}
		meter.Elements([]record.Element{*e})
		return c.Live()
	})
	if err == nil && there && !began { // a stream without elements
		err = c.Header(c.Args[2], func(h *record.Header) { meter.Begin(h) })
	}
	if err == nil && there {
		c.W.Int(meter.Bytes())
	} else if err == nil {
		c.W.Null()
	}
	return err
}
