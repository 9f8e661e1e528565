// Package command answers clients: what all commands share, and those on connections and the server. Commands on keys
// and values are in the packages below it.
package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"kvferry/internal/shared/argument"
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

// Table holds commands by name.
type Table struct {
	by    map[string]*Command
	names []string // sorted
}

// NewTable returns a table of the commands on connections, the refused ones, and some more, which replace others of
// their name.
func NewTable(more ...Command) *Table {
	t := &Table{by: map[string]*Command{}}
	for _, list := range [][]Command{connectionCommands(), sessionCommands(), refusedCommands(), more} {
		for i := range list {
			t.by[list[i].Name] = &list[i]
			list[i].stats = new(commandStats)
		}
	}
	t.names = slices.Sorted(maps.Keys(t.by))
	return t
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

// refused are commands without an answer, with their flags and the reply; without one they write.
var refused = []struct{ list, flags, reply string }{
	{writes, "write", ""},
	{"eval -3 0 0 0|evalsha -3 0 0 0|fcall -3 0 0 0|eval_ro -3 0 0 0|evalsha_ro -3 0 0 0|fcall_ro -3 0 0 0", "noscript stale movablekeys", noScripts},
	{"save 1 0 0 0|bgsave -1 0 0 0|bgrewriteaof 1 0 0 0", "admin noscript",
		"ERR kvferry serve does not save: the dataset is on disk; to make an RDB file, use kvferry convert or redis-cli --rdb"},
	{"replicaof 3 0 0 0|slaveof 3 0 0 0|failover -1 0 0 0", "admin noscript stale",
		"ERR kvferry serve replicates from no server: run REPLICAOF on the server that is to copy this dataset"},
	{"shutdown -1 0 0 0", "admin noscript loading stale", "ERR no client can end kvferry serve: press Ctrl-C, or send SIGTERM"},
	{"debug -2 0 0 0", "admin noscript loading stale", "ERR kvferry serve has no DEBUG: kvferry explain and kvferry inspect show how keys are stored"},
}

// refuse makes a command that replies with an error.
func refuse(reply string) func(*Call) error {
	return func(*Call) error { return argument.Refuse(reply) }
}

func refusedCommands() (out []Command) {
	for _, r := range refused {
		for _, line := range strings.Split(r.list, "|") {
			c := Command{Flags: r.flags}
			if r.reply != "" {
				c.Run = refuse(r.reply)
			}
			if _, err := fmt.Sscan(line, &c.Name, &c.Arity, &c.First, &c.Last, &c.Step); err != nil {
				panic(err) // the lists are constants
			}
			out = append(out, c)
		}
	}
	return out
}

// writes lists name, arity and keys of writing commands.
const writes = `append 3 1 1 1|bitfield -2 1 1 1|bitop -4 2 -1 1|blmove 6 1 2 1|blmpop -5 0 0 0|blpop -3 1 -2 1|` +
	`brpop -3 1 -2 1|brpoplpush 4 1 2 1|bzmpop -5 0 0 0|bzpopmax -3 1 -2 1|bzpopmin -3 1 -2 1|` +
	`copy -3 1 2 1|decr 2 1 1 1|decrby 3 1 1 1|del -2 1 -1 1|expire -3 1 1 1|expireat -3 1 1 1|` +
	`flushall -1 0 0 0|flushdb -1 0 0 0|geoadd -5 1 1 1|geosearchstore -8 1 2 1|getdel 2 1 1 1|` +
	`getex -2 1 1 1|getset 3 1 1 1|hdel -3 1 1 1|hexpire -6 1 1 1|hexpireat -6 1 1 1|hgetdel -5 1 1 1|` +
	`hgetex -5 1 1 1|hincrby 4 1 1 1|hincrbyfloat 4 1 1 1|hmset -4 1 1 1|hpersist -5 1 1 1|` +
	`hpexpire -6 1 1 1|hpexpireat -6 1 1 1|hset -4 1 1 1|hsetex -6 1 1 1|hsetnx 4 1 1 1|incr 2 1 1 1|` +
	`incrby 3 1 1 1|incrbyfloat 3 1 1 1|json.del -2 1 1 1|json.set -4 1 1 1|linsert 5 1 1 1|lmove 5 1 2 1|` +
	`lmpop -4 0 0 0|lpop -2 1 1 1|lpush -3 1 1 1|lpushx -3 1 1 1|lrem 4 1 1 1|lset 4 1 1 1|ltrim 4 1 1 1|` +
	`migrate -6 3 3 1|move 3 1 1 1|mset -3 1 -1 2|msetnx -3 1 -1 2|persist 2 1 1 1|pexpire -3 1 1 1|` +
	`pexpireat -3 1 1 1|pfadd -2 1 1 1|pfmerge -2 1 -1 1|psetex 4 1 1 1|rename 3 1 2 1|renamenx 3 1 2 1|` +
	`restore -4 1 1 1|rpop -2 1 1 1|rpoplpush 3 1 2 1|rpush -3 1 1 1|rpushx -3 1 1 1|sadd -3 1 1 1|` +
	`sdiffstore -3 1 -1 1|set -3 1 1 1|setbit 4 1 1 1|setex 4 1 1 1|setnx 3 1 1 1|setrange 4 1 1 1|` +
	`sinterstore -3 1 -1 1|smove 4 1 2 1|spop -2 1 1 1|srem -3 1 1 1|sunionstore -3 1 -1 1|swapdb 3 0 0 0|` +
	`unlink -2 1 -1 1|xgroup -2 2 2 1|xackdel -6 1 1 1|xdelex -5 1 1 1|msetex -4 0 0 0|delex -2 1 1 1|xack -4 1 1 1|xadd -5 1 1 1|xautoclaim -6 1 1 1|xclaim -6 1 1 1|xdel -3 1 1 1|` +
	`xreadgroup -7 0 0 0|xsetid -3 1 1 1|xtrim -4 1 1 1|zadd -4 1 1 1|zdiffstore -4 1 1 1|zincrby 4 1 1 1|` +
	`zinterstore -4 1 1 1|zmpop -4 0 0 0|zpopmax -2 1 1 1|zpopmin -2 1 1 1|zrangestore -5 1 2 1|` +
	`zrem -3 1 1 1|zremrangebylex 4 1 1 1|zremrangebyrank 4 1 1 1|zremrangebyscore 4 1 1 1|` +
	`zunionstore -4 1 1 1`
