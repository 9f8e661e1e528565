// Package command answers clients: what all commands share, and those on connections and the server. Commands on keys
// and values are in the packages below it.
package command

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"kvferry/internal/shared/argument"
	"kvferry/redis/syntax"
	"kvferry/serve/resp"
)

// Command is a command of the table with the function that answers it. COMMAND, the check of arity, and the refusal of
// writes come from the table alone.
type Command struct {
	*syntax.Command
	// Run answers the command. It is nil for a command that writes.
	Run func(*Call) error

	subs  map[string]*Command // by their names in lower case
	stats commandStats
}

// Functions answer commands, by name; of subcommands both names, as in config|get.
type Functions map[string]func(*Call) error

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

// Table holds commands by name.
type Table struct {
	by    map[string]*Command
	names []string   // sorted
	all   []*Command // in the order of their names, each before its subcommands
}

// NewTable returns a table of the commands on connections, the refused ones, and some more, which replace others of
// their name.
func NewTable(more ...Functions) *Table {
	runs := Functions{}
	for name, row := range syntax.Commands() {
		if row.Group != "" && row.Has("write") {
			runs[name] = nil
		}
	}
	for _, list := range append([]Functions{connectionCommands, sessionCommands, refusedCommands}, more...) {
		maps.Copy(runs, list)
	}
	t := &Table{by: map[string]*Command{}}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		outer, sub, is := strings.Cut(name, "|")
		if t.by[outer] == nil {
			t.by[outer] = &Command{Command: syntax.Commands()[outer], subs: map[string]*Command{}}
		}
		c := t.by[outer]
		if is {
			c.subs[sub] = &Command{Command: syntax.Commands()[name]}
			c = c.subs[sub]
		}
		c.Run = runs[name]
	}
	t.names = slices.Sorted(maps.Keys(t.by))
	for _, name := range t.names {
		c := t.by[name]
		if subs := slices.Sorted(maps.Keys(c.subs)); len(subs) > 0 {
			c.subs["help"] = &Command{Command: syntax.Commands()[name+"|help"], Run: help(name, append(subs, "help"))}
		}
		t.all = append(t.all, c)
		for _, sub := range slices.Sorted(maps.Keys(c.subs)) {
			t.all = append(t.all, c.subs[sub])
		}
	}
	return t
}

// help lists the subcommands of a command.
func help(name string, subs []string) func(*Call) error {
	return func(call *Call) error {
		call.W.Header(resp.Array, int64(len(subs)+1))
		call.W.Simple(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
		for _, sub := range subs {
			call.W.Simple(strings.ToUpper(sub))
		}
		return nil
	}
}

// lookup finds the command of a request, or its subcommand. It returns nil for an unknown command.
func (t *Table) lookup(args [][]byte) (*Command, error) {
	c := t.Find(args[0])
	if c == nil || len(c.subs) == 0 || len(args) < 2 {
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

// fits reports whether n arguments are right.
func (c *Command) fits(n int) bool { return syntax.Takes(c.Arity, n) }

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

// refusedCommands are commands without an answer, with the reply.
var refusedCommands = refusals(map[string]string{
	"eval evalsha fcall eval_ro evalsha_ro fcall_ro": noScripts,
	"save bgsave bgrewriteaof":                       "ERR kvferry serve does not save: the dataset is on disk; to make an RDB file, use kvferry convert or redis-cli --rdb",
	"replicaof slaveof failover":                     "ERR kvferry serve replicates from no server: run REPLICAOF on the server that is to copy this dataset",
	"shutdown":                                       "ERR no client can end kvferry serve: press Ctrl-C, or send SIGTERM",
	"debug":                                          "ERR kvferry serve has no DEBUG: kvferry explain and kvferry inspect show how keys are stored",
})

func refusals(replies map[string]string) Functions {
	out := Functions{}
	for names, reply := range replies {
		for name := range strings.FieldsSeq(names) {
			out[name] = refuse(reply)
		}
	}
	return out
}

// refuse makes a command that replies with an error.
func refuse(reply string) func(*Call) error {
	return func(*Call) error { return argument.Refuse(reply) }
}
