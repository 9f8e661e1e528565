package command

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"kvferry/internal/pass/filter"
	"kvferry/internal/shared/argument"
	"kvferry/serve/resp"
)

// all returns the open connections by number.
func (cs *Clients) all() []*Client {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	out := make([]*Client, 0, len(cs.open))
	for _, c := range cs.open {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Client) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

var infoSections = []string{"server", "clients", "memory", "persistence", "stats", "replication", "cluster", "commandstats", "keyspace"}

func info(c *Call) error {
	usual := slices.DeleteFunc(slices.Clone(infoSections), func(name string) bool { return name == "commandstats" })
	wanted := usual
	if len(c.Args) > 1 {
		wanted = nil
		for _, a := range c.Args[1:] {
			switch name := Lower(a); name {
			case "all", "everything":
				wanted = infoSections
			case "default":
				wanted = append(wanted, usual...)
			default:
				wanted = append(wanted, name)
			}
		}
	}
	var parts []string
	for _, name := range infoSections {
		if slices.Contains(wanted, name) {
			lines := append([]string{"# " + strings.ToUpper(name[:1]) + name[1:]}, c.Server.section(name)...)
			parts = append(parts, strings.Join(lines, "\r\n")+"\r\n")
		}
	}
	c.W.Verbatim(strings.Join(parts, "\r\n"))
	return nil
}

// section returns the lines of a section.
func (s *Server) section(name string) (out []string) {
	add := func(name string, value any) { out = append(out, fmt.Sprintf("%s:%v", name, value)) }
	switch name {
	case "server":
		add("redis_version", redisVersion)
		add("kvferry_version", s.Version)
		add("redis_mode", s.mode())
		add("process_id", os.Getpid())
		add("run_id", s.RunID)
		add("tcp_port", s.Port)
		add("uptime_in_seconds", int64(time.Since(s.Started).Seconds()))
		add("kvferry_now", s.Now.UTC().Format(time.RFC3339))
	case "clients":
		add("connected_clients", s.Clients.Len())
		add("maxclients", s.MaxClients)
		add("blocked_clients", 0)
	case "memory":
		used := usedMemory()
		add("used_memory", used)
		add("used_memory_human", fmt.Sprintf("%.2fM", float64(used)/(1<<20)))
		add("maxmemory", s.Memory)
		add("maxmemory_policy", "noeviction")
	case "persistence":
		add("loading", Number(s.loading.Load()))
	case "stats":
		s.counters(add)
	case "replication":
		if s.Info == nil {
			add("role", "master")
			add("connected_slaves", 0)
		}
	case "commandstats":
		for _, cmd := range s.Table.all {
			if line := cmd.line(); line != "" {
				out = append(out, line)
			}
		}
	case "cluster":
		add("cluster_enabled", Number(s.Route != nil))
	case "keyspace":
		for _, db := range s.known() {
			if n := s.Keys.Count(db); n.Keys > 0 || !n.Exact {
				out = append(out, n.line(db))
			}
		}
	}
	if s.Info != nil {
		out = append(out, s.Info(name)...)
	}
	return out
}

// usedMemory is the memory that the process has from the system, in bytes.
func usedMemory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

func (s *Server) counters(add func(string, any)) {
	add("total_connections_received", s.Stats.Connections.Load())
	add("rejected_connections", s.Stats.Refused.Load())
	add("total_commands_processed", s.Stats.Commands.Load())
	add("total_error_replies", s.Stats.Errors.Load())
	add("total_net_input_bytes", s.Stats.In.Load())
	add("total_net_output_bytes", s.Stats.Out.Load())
	add("keyspace_hits", s.Stats.Hits.Load())
	add("keyspace_misses", s.Stats.Misses.Load())
	add("kvferry_damaged_keys_met", s.Stats.Damaged.Load())
	passes, bytes := s.Held()
	add("kvferry_open_passes", passes)
	add("kvferry_large_elements_bytes", bytes)
}

// line describes a database. Its numbers are estimates until all keys were counted.
func (n Count) line(db Database) string {
	line := fmt.Sprintf("db%d:keys=%d,expires=%d,avg_ttl=0", db.Number, n.Keys, n.Expires)
	if !n.Exact {
		line += ",estimated=1"
	}
	return line
}

// commands answers COMMAND.
func commands(c *Call) error {
	c.W.Header(resp.Array, int64(len(c.Server.Table.names)))
	for _, name := range c.Server.Table.names {
		c.describe(c.Server.Table.by[name])
	}
	return nil
}

func (c *Call) describe(cmd *Command) {
	w := c.W
	w.Header(resp.Array, 10)
	w.BulkString(cmd.Name)
	w.Int(int64(cmd.Arity))
	w.Header(resp.Set, int64(len(cmd.Flags)))
	for _, f := range cmd.Flags {
		w.Simple(f)
	}
	w.Int(int64(cmd.First))
	w.Int(int64(cmd.Last))
	w.Int(int64(cmd.Step))
	w.Header(resp.Set, 0)   // categories
	w.Header(resp.Array, 0) // tips
	w.Header(resp.Array, 0) // specifications of keys
	w.Header(resp.Array, int64(len(cmd.subs)))
	for _, name := range slices.Sorted(maps.Keys(cmd.subs)) {
		c.describe(cmd.subs[name])
	}
}

func commandInfo(c *Call) error {
	if len(c.Args) == 2 {
		return commands(c)
	}
	c.W.Header(resp.Array, int64(len(c.Args)-2))
	for _, name := range c.Args[2:] {
		if cmd := c.Server.Table.named(name); cmd != nil {
			c.describe(cmd)
		} else {
			c.W.NullArray()
		}
	}
	return nil
}

func commandList(c *Call) error {
	in := func(*Command) bool { return true }
	switch n := len(c.Args); {
	case n == 2:
	case n != 5 || !argument.Is(c.Args[2], "FILTERBY"):
		return argument.ErrSyntax
	case argument.Is(c.Args[3], "PATTERN"):
		in = func(cmd *Command) bool { return filter.Glob(Lower(c.Args[4]), []byte(cmd.Name)) }
	case argument.Is(c.Args[3], "ACLCAT"):
		in = inCategory(Lower(c.Args[4]))
	case argument.Is(c.Args[3], "MODULE"): // kvferry has no modules
		in = nil
	default:
		return argument.ErrSyntax
	}
	c.W.Strings(resp.Array, c.Server.Table.choose(in))
	return nil
}

func commandGetKeys(c *Call) error {
	args := c.Args[2:]
	cmd, err := c.Server.Table.lookup(args)
	switch {
	case cmd == nil || err != nil:
		return argument.Refuse("ERR Invalid command specified")
	case cmd.First == 0 && !cmd.Has("movablekeys") || cmd.Has("pubsub"):
		return argument.Refuse("ERR The command has no key arguments")
	case !cmd.fits(len(args)):
		return argument.Refuse("ERR Invalid number of arguments specified for command")
	}
	keys := cmd.keys(args)
	if len(keys) == 0 && !cmd.Has("no_mandatory_keys") {
		return argument.Refuse("ERR Invalid arguments specified for command")
	}
	c.W.Header(resp.Array, int64(len(keys)))
	for _, key := range keys {
		c.W.Bulk(key)
	}
	return nil
}
