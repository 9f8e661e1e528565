package command

import (
	"fmt"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/redis/syntax"
	"kvferry/serve/resp"
)

// commandDocs replies with documents of commands: of some, or of all.
func commandDocs(c *Call) error {
	names := c.Server.Table.names
	if len(c.Args) > 2 {
		names = nil
		for _, name := range c.Args[2:] {
			if cmd := c.Server.Table.named(name); cmd != nil {
				names = append(names, cmd.Name)
			}
		}
	}
	c.W.Header(resp.Map, int64(len(names)))
	for _, name := range names {
		row := syntax.Commands()[name]
		c.W.BulkString(name)
		c.W.Pairs("summary", row.Summary, "since", row.Since, "group", row.Group)
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
	in := inCategory(Lower(c.Args[2]))
	if in == nil {
		return argument.Refuse(fmt.Sprintf("ERR Unknown category '%s'", cut(c.Args[2], 128)))
	}
	c.W.Strings(resp.Array, c.Server.Table.choose(in))
	return nil
}

// inCategory returns the condition for commands of a category; nil for an unknown category.
func inCategory(name string) func(*Command) bool {
	i := slices.IndexFunc(categories, func(category [2]string) bool { return category[0] == name })
	if i < 0 {
		return nil
	}
	group := categories[i][1]
	return func(c *Command) bool { return group != "" && c.Group == group || group == "" && c.in(name) }
}

// choose returns the names of the commands and subcommands that meet a condition. A nil condition chooses no command.
func (t *Table) choose(in func(*Command) bool) (names []string) {
	for _, c := range t.all {
		if in != nil && in(c) {
			names = append(names, c.Name)
		}
	}
	return names
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
	none := []string(nil)
	c.W.Pairs("flags", func() { c.W.Strings(resp.Set, flags) }, "passwords", none, "commands", userCommands,
		"keys", "~*", "channels", "&*", "selectors", none)
	return nil
}

// userCommands are the permissions of the user default.
const userCommands = "+@all -@write"

func aclList(c *Call) error {
	nopass := ""
	if c.Server.Password == "" {
		nopass = "nopass "
	}
	c.W.Strings(resp.Array, []string{"user default on " + nopass + "~* &* " + userCommands})
	return nil
}

func aclDryrun(c *Call) error {
	cmd, err := c.Server.Table.lookup(c.Args[3:])
	switch {
	case string(c.Args[2]) != "default":
		return argument.Refuse(fmt.Sprintf("ERR User '%s' not found", cut(c.Args[2], 128)))
	case cmd == nil:
		return argument.Refuse(fmt.Sprintf("ERR Command '%s' not found", cut(c.Args[3], 128)))
	case err != nil:
		return err
	case !cmd.fits(len(c.Args) - 3):
		return wrongArgs(cmd.Name)
	case cmd.Run == nil:
		c.W.BulkString(fmt.Sprintf("User default has no permissions to run the '%s' command", cmd.Name))
		return nil
	}
	return ok(c)
}

// aclLog has no entries.
func aclLog(c *Call) error {
	if len(c.Args) > 2 {
		if argument.Is(c.Args[2], "RESET") {
			return ok(c)
		}
		if _, err := argument.ParseInt(c.Args[2]); err != nil {
			return err
		}
	}
	return empty(c)
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
	c.W.Pairs("peak.allocated", used, "total.allocated", used, "startup.allocated", 0, "replication.backlog", 0, "clients.slaves", 0,
		"clients.normal", large, "cluster.links", 0, "aof.buffer", 0, "lua.caches", 0, "functions.caches", 0,
		"overhead.total", used, "keys.count", keys, "keys.bytes-per-key", 0, "dataset.bytes", 0)
	return nil
}
