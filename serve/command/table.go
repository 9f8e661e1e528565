// Package command answers clients: what all commands share, and those on connections and the server. Commands on keys
// and values are in the packages below it.
package command

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"kvferry/internal/shared/argument"
	"kvferry/serve/resp"
)

// Command is a command of the table. COMMAND, the check of arity, and the refusal of writes come from it alone.
type Command struct {
	Name string
	// Arity is the number of arguments with the name; -n: at least n.
	Arity int
	// Flags are the flags of Redis, separated by blanks.
	Flags string
	// First, Last and Step tell which arguments are keys, as in COMMAND; 0: none.
	First, Last, Step int
	// Run answers the command. It is nil for a command that writes.
	Run func(*Call) error

	subs  map[string]*Command // by their names in lower case
	stats *commandStats
}

// commandStats counts the calls of a command for INFO commandstats.
type commandStats struct{ calls, micros, rejected, failed atomic.Int64 }

// line returns the line for INFO commandstats; "" without calls.
func (c *Command) line() string {
	calls, micros, rejected := c.stats.calls.Load(), c.stats.micros.Load(), c.stats.rejected.Load()
	if calls+rejected == 0 {
		return ""
	}
	return fmt.Sprintf("cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d", c.Name, calls, micros,
		float64(micros)/float64(max(calls, 1)), rejected, c.stats.failed.Load())
}

// Of returns a command of all its fields.
func Of(name string, arity int, flags string, first, last, step int, run func(*Call) error) Command {
	return Command{Name: name, Arity: arity, Flags: flags, First: first, Last: last, Step: step, Run: run}
}

// Container returns a command of subcommands, which have these flags unless they have their own. HELP lists them.
func Container(name, flags string, subs map[string]Command) Command {
	c := Command{Name: name, Arity: -2, subs: map[string]*Command{}}
	names := append(slices.Sorted(maps.Keys(subs)), "help")
	c.subs["help"] = &Command{Arity: 2, Flags: "loading stale", Run: func(call *Call) error {
		call.W.Header(resp.Array, int64(len(names)+1))
		call.W.Simple(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
		for _, sub := range names {
			call.W.Simple(strings.ToUpper(sub))
		}
		return nil
	}}
	for sub, s := range subs {
		s.Flags = cmp.Or(s.Flags, flags)
		c.subs[sub] = &s
	}
	for sub, s := range c.subs {
		s.Name, s.stats = name+"|"+sub, new(commandStats)
	}
	return c
}

// Table holds commands by name.
type Table struct {
	by    map[string]*Command
	names []string   // sorted
	all   []*Command // in the order of their names, each before its subcommands
}

// NewTable returns a table of the commands on connections, the refused ones, and some more, which replace others of
// their name.
func NewTable(more ...Command) *Table {
	t := &Table{by: map[string]*Command{}}
	for _, list := range [][]Command{connectionCommands(), sessionCommands(), refusedCommands(), {xgroup()}, more} {
		for i := range list {
			t.by[list[i].Name] = &list[i]
			list[i].stats = new(commandStats)
		}
	}
	t.names = slices.Sorted(maps.Keys(t.by))
	for _, name := range t.names {
		t.all = append(t.all, t.by[name])
		for _, sub := range slices.Sorted(maps.Keys(t.by[name].subs)) {
			t.all = append(t.all, t.by[name].subs[sub])
		}
	}
	return t
}

// lookup finds the command of a request, or its subcommand. It returns nil for an unknown command.
func (t *Table) lookup(args [][]byte) (*Command, error) {
	c := t.Find(args[0])
	if c == nil || c.subs == nil || len(args) < 2 {
		return c, nil
	}
	if sub := c.subs[Lower(args[1])]; sub != nil {
		return sub, nil
	}
	return c, argument.Refuse(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", cut(args[1], 128), strings.ToUpper(c.Name)))
}

// named finds a command by its name, or a subcommand by one such as config|get.
func (t *Table) named(name []byte) *Command {
	c, err := t.lookup(bytes.SplitN(name, []byte("|"), 2))
	if err != nil {
		return nil
	}
	return c
}

// Find returns a command by its name in any case; nil if there is none.
func (t *Table) Find(name []byte) *Command {
	var room [32]byte
	if len(name) > len(room) {
		return nil
	}
	lower := room[:len(name)]
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return t.by[string(lower)]
}

// Has reports whether a command has a flag.
func (c *Command) Has(flag string) bool { return slices.Contains(strings.Fields(c.Flags), flag) }

// fits reports whether n arguments are right.
func (c *Command) fits(n int) bool { return n == c.Arity || c.Arity < 0 && n >= -c.Arity }

// unknown is the text of Redis about an unknown command, of which some clients check the start.
func unknown(args [][]byte) error {
	const most = 128
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() >= most {
			break
		}
		fmt.Fprintf(&b, "'%s' ", cut(a, most-b.Len()))
	}
	return argument.Refuse(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", cut(args[0], most), b.String()))
}

// cut returns up to n bytes of an argument, up to a NUL as C's printf has it.
func cut(b []byte, n int) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:min(i, n)]
		}
	}
	return b[:min(len(b), n)]
}

// noScripts is the reply to what would run code.
const noScripts = "ERR kvferry serve runs no scripts and no functions"

// flagNames has the flag for each letter in lists of commands.
var flagNames = map[rune]string{'b': "blocking", 'd': "denyoom", 'f': "fast", 'm': "movablekeys", 'n': "noscript", 'r': "readonly", 't': "no_multi", '-': ""}

// refused are commands without an answer, with their flags and the reply; without one they write.
var refused = []struct{ list, flags, reply string }{
	{writes, "write", ""},
	{"eval -3 0 0 0 m|evalsha -3 0 0 0 m|fcall -3 0 0 0 m|eval_ro -3 0 0 0 mr|evalsha_ro -3 0 0 0 mr|fcall_ro -3 0 0 0 mr", "noscript stale skip_monitor no_mandatory_keys", noScripts},
	{"save 1 0 0 0 t|bgsave -1 0 0 0 -|bgrewriteaof 1 0 0 0 -", "admin noscript no_async_loading",
		"ERR kvferry serve saves nothing: the dataset is on disk; kvferry convert or redis-cli --rdb makes an RDB file"},
	{"replicaof 3 0 0 0 -|slaveof 3 0 0 0 -|failover -1 0 0 0 -", "admin noscript stale",
		"ERR kvferry serve replicates from no server: run REPLICAOF on the server that is to copy this dataset"},
	{"shutdown -1 0 0 0 t", "admin noscript loading stale allow_busy", "ERR no client can end kvferry serve: press Ctrl-C, or send SIGTERM"},
	{"debug -2 0 0 0 -", "admin noscript loading stale", "ERR kvferry serve has no DEBUG: kvferry explain and kvferry inspect show how keys are stored"},
}

// refuse makes a command that replies with an error.
func refuse(reply string) func(*Call) error {
	return func(*Call) error { return argument.Refuse(reply) }
}

// xgroup has a key after the name of the subcommand. All subcommands write.
func xgroup() Command {
	subs := map[string]Command{}
	for name, arity := range map[string]int{"create": -5, "createconsumer": 5, "delconsumer": 5, "destroy": 4, "setid": -5} {
		subs[name] = Of("", arity, "write", 2, 2, 1, nil)
	}
	return Container("xgroup", "", subs)
}

func refusedCommands() (out []Command) {
	for _, r := range refused {
		for _, line := range strings.Split(r.list, "|") {
			c, letters := Command{Flags: r.flags}, ""
			if r.reply != "" {
				c.Run = refuse(r.reply)
			}
			if _, err := fmt.Sscan(line, &c.Name, &c.Arity, &c.First, &c.Last, &c.Step, &letters); err != nil {
				panic(err) // the lists are constants
			}
			for _, letter := range letters {
				c.Flags += " " + flagNames[letter]
			}
			out = append(out, c)
		}
	}
	return out
}

// writes lists name, arity, keys and letters for flags of writing commands.
const writes = `append 3 1 1 1 df|bitfield -2 1 1 1 d|bitop -4 2 -1 1 d|blmove 6 1 2 1 bdn|blmpop -5 0 0 0 bm|blpop -3 1 -2 1 bn|` +
	`brpop -3 1 -2 1 bn|brpoplpush 4 1 2 1 bdn|bzmpop -5 0 0 0 bm|bzpopmax -3 1 -2 1 bfn|bzpopmin -3 1 -2 1 bfn|` +
	`copy -3 1 2 1 d|decr 2 1 1 1 df|decrby 3 1 1 1 df|del -2 1 -1 1 -|expire -3 1 1 1 f|expireat -3 1 1 1 f|` +
	`flushall -1 0 0 0 -|flushdb -1 0 0 0 -|geoadd -5 1 1 1 d|geosearchstore -8 1 2 1 d|getdel 2 1 1 1 f|getex -2 1 1 1 f|` +
	`getset 3 1 1 1 df|hdel -3 1 1 1 f|hexpire -6 1 1 1 f|hexpireat -6 1 1 1 f|hgetdel -5 1 1 1 f|hgetex -5 1 1 1 f|` +
	`hincrby 4 1 1 1 df|hincrbyfloat 4 1 1 1 df|hmset -4 1 1 1 df|hpersist -5 1 1 1 f|hpexpire -6 1 1 1 f|` +
	`hpexpireat -6 1 1 1 f|hset -4 1 1 1 df|hsetex -6 1 1 1 df|hsetnx 4 1 1 1 df|incr 2 1 1 1 df|incrby 3 1 1 1 df|` +
	`incrbyfloat 3 1 1 1 df|json.del -2 1 1 1 -|json.set -4 1 1 1 -|linsert 5 1 1 1 d|lmove 5 1 2 1 d|lmpop -4 0 0 0 m|` +
	`lpop -2 1 1 1 f|lpush -3 1 1 1 df|lpushx -3 1 1 1 df|lrem 4 1 1 1 -|lset 4 1 1 1 d|ltrim 4 1 1 1 -|migrate -6 3 3 1 -|` +
	`move 3 1 1 1 f|mset -3 1 -1 2 d|msetnx -3 1 -1 2 d|persist 2 1 1 1 f|pexpire -3 1 1 1 f|pexpireat -3 1 1 1 f|` +
	`pfadd -2 1 1 1 df|pfmerge -2 1 -1 1 d|psetex 4 1 1 1 d|rename 3 1 2 1 -|renamenx 3 1 2 1 f|restore -4 1 1 1 d|` +
	`rpop -2 1 1 1 f|rpoplpush 3 1 2 1 d|rpush -3 1 1 1 df|rpushx -3 1 1 1 df|sadd -3 1 1 1 df|sdiffstore -3 1 -1 1 d|` +
	`set -3 1 1 1 d|setbit 4 1 1 1 d|setex 4 1 1 1 d|setnx 3 1 1 1 df|setrange 4 1 1 1 d|sinterstore -3 1 -1 1 d|` +
	`smove 4 1 2 1 f|spop -2 1 1 1 f|srem -3 1 1 1 f|sunionstore -3 1 -1 1 d|swapdb 3 0 0 0 f|unlink -2 1 -1 1 f|` +
	`xackdel -6 1 1 1 f|xdelex -5 1 1 1 f|msetex -4 0 0 0 dm|delex -2 1 1 1 f|xack -4 1 1 1 f|xadd -5 1 1 1 df|` +
	`xautoclaim -6 1 1 1 f|xclaim -6 1 1 1 f|xdel -3 1 1 1 f|xreadgroup -7 0 0 0 bm|xsetid -3 1 1 1 df|xtrim -4 1 1 1 -|` +
	`zadd -4 1 1 1 df|zdiffstore -4 1 1 1 dm|zincrby 4 1 1 1 df|zinterstore -4 1 1 1 dm|zmpop -4 0 0 0 m|zpopmax -2 1 1 1 f|` +
	`zpopmin -2 1 1 1 f|zrangestore -5 1 2 1 d|zrem -3 1 1 1 f|zremrangebylex 4 1 1 1 -|zremrangebyrank 4 1 1 1 -|` +
	`zremrangebyscore 4 1 1 1 -|zunionstore -4 1 1 1 dm`
