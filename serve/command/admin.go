package command

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"kvferry/internal/shared/argument"
	"kvferry/serve/resp"
)

// docs has a line for each command: name, version that brought it, group and summary, from COMMAND DOCS of Redis 7.0. Later
// commands have no summary.
//
//go:embed docs.txt
var docs string

// doc is what COMMAND DOCS shows of a command.
type doc struct{ since, group, summary string }

// docsOf parses docs.
func docsOf() map[string]doc {
	out := map[string]doc{}
	for line := range strings.Lines(docs) {
		if f := strings.Split(strings.TrimSpace(line), "|"); len(f) == 4 {
			out[f[0]] = doc{f[1], f[2], f[3]}
		}
	}
	return out
}

// commandDocs replies with documents of commands: of some, or of all.
func commandDocs(c *Call) error {
	all, names := docsOf(), c.Server.Table.names
	if len(c.Args) > 2 {
		names = nil
		for _, name := range c.Args[2:] {
			if cmd := c.Server.Table.Find(name); cmd != nil {
				names = append(names, cmd.Name)
			}
		}
	}
	c.W.Header(resp.Map, int64(len(names)))
	for _, name := range names {
		c.W.BulkString(name)
		c.W.Header(resp.Map, 3)
		d := all[name]
		for _, pair := range [][2]string{{"summary", d.summary}, {"since", d.since}, {"group", d.group}} {
			c.W.BulkString(pair[0])
			c.W.BulkString(pair[1])
		}
	}
	return nil
}

// categories lists the categories of ACL CAT. A category has the commands of a group; without a group, flags decide.
var categories = [][2]string{{"keyspace", "generic"}, {"read"}, {"write"}, {"set", "set"}, {"sortedset", "sorted-set"}, {"list", "list"},
	{"hash", "hash"}, {"string", "string"}, {"bitmap", "bitmap"}, {"hyperloglog", "hyperloglog"}, {"geo", "geo"}, {"stream", "stream"},
	{"pubsub", "pubsub"}, {"admin"}, {"fast"}, {"slow"}, {"blocking"}, {"dangerous"}, {"connection", "connection"},
	{"transaction", "transactions"}, {"scripting", "scripting"}}

// in reports whether a command is in a category without a group.
func (c *Command) in(category string) bool {
	switch category {
	case "read":
		return c.Has("readonly")
	case "slow":
		return !c.Has("fast")
	case "dangerous":
		return c.Has("admin") || slices.Contains([]string{"keys", "sort", "info", "role"}, c.Name)
	}
	return c.Has(category)
}

func aclCat(c *Call) error {
	if len(c.Args) == 2 {
		c.W.Header(resp.Array, int64(len(categories)))
		for _, category := range categories {
			c.W.BulkString(category[0])
		}
		return nil
	}
	name := Lower(c.Args[2])
	i := slices.IndexFunc(categories, func(category [2]string) bool { return category[0] == name })
	if i < 0 {
		return argument.Refuse(fmt.Sprintf("ERR Unknown category '%s'", cut(c.Args[2], 128)))
	}
	all, names := docsOf(), []string(nil)
	for _, name := range c.Server.Table.names {
		group := categories[i][1]
		if group != "" && all[name].group == group || group == "" && c.Server.Table.by[name].in(categories[i][0]) {
			names = append(names, name)
		}
	}
	c.texts(resp.Array, names)
	return nil
}

// aclGetUser describes the user default. There is no other.
func aclGetUser(c *Call) error {
	if string(c.Args[2]) != "default" {
		c.W.Null()
		return nil
	}
	flags := []string{"on"}
	if c.Server.Password == "" {
		flags = append(flags, "nopass")
	}
	c.W.Header(resp.Map, 6)
	c.W.BulkString("flags")
	c.texts(resp.Set, flags)
	c.W.BulkString("passwords")
	c.texts(resp.Array, nil)
	for _, pair := range [][2]string{{"commands", userCommands}, {"keys", "~*"}, {"channels", "&*"}} {
		c.W.BulkString(pair[0])
		c.W.BulkString(pair[1])
	}
	c.W.BulkString("selectors")
	c.texts(resp.Array, nil)
	return nil
}

// userCommands are the permissions of the user default.
const userCommands = "+@all -@write"

func aclList(c *Call) error {
	nopass := ""
	if c.Server.Password == "" {
		nopass = "nopass "
	}
	c.texts(resp.Array, []string{"user default on " + nopass + "~* &* " + userCommands})
	return nil
}

func aclDryrun(c *Call) error {
	cmd := c.Server.Table.Find(c.Args[3])
	switch {
	case string(c.Args[2]) != "default":
		return argument.Refuse(fmt.Sprintf("ERR User '%s' not found", cut(c.Args[2], 128)))
	case cmd == nil:
		return argument.Refuse(fmt.Sprintf("ERR Command '%s' not found", cut(c.Args[3], 128)))
	case !cmd.fits(len(c.Args) - 3):
		return wrongArgs(cmd.Name)
	case cmd.Run == nil:
		c.W.BulkString(fmt.Sprintf("User default has no permissions to run the '%s' command", cmd.Name))
		return nil
	}
	return ok(c)
}

// latencyHistogram counts no latencies.
func latencyHistogram(c *Call) error { c.W.Header(resp.Map, 0); return nil }

// MemoryStats is MEMORY STATS.
func MemoryStats(c *Call) error {
	keys := int64(0)
	for _, db := range c.Server.Keys.Databases() {
		keys += c.Server.Keys.Count(db).Keys
	}
	_, large := c.Server.Held()
	used := int64(usedMemory())
	stats := []struct {
		name string
		n    int64
	}{{"peak.allocated", used}, {"total.allocated", used}, {"startup.allocated", 0}, {"replication.backlog", 0}, {"clients.slaves", 0},
		{"clients.normal", large}, {"cluster.links", 0}, {"aof.buffer", 0}, {"lua.caches", 0}, {"functions.caches", 0},
		{"overhead.total", used}, {"keys.count", keys}, {"keys.bytes-per-key", 0}, {"dataset.bytes", 0}}
	c.W.Header(resp.Map, int64(len(stats)))
	for _, s := range stats {
		c.W.BulkString(s.name)
		c.W.Int(s.n)
	}
	return nil
}
