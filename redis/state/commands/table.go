package commands

import (
	"bytes"

	"kvferry/redis/state"
	"kvferry/redis/syntax"
)

// command is a row of the table with the fields that the replay adds.
type command struct {
	*syntax.Command
	write     bool           // it may change keys
	wild      bool           // it may change keys that its arguments do not name, as a script may
	keys      finder         // nil: the table has their positions
	run       run            // nil for a command that changes no keys or, with write or wild, whose effect is not followed
	since     []state.Writer // the first servers that have it; nil: any that writes a log may
	container bool           // it has subcommands
}

// find returns the command named by args; false if no server has it.
func find(s *state.Server, args [][]byte) (*command, bool) {
	c, ok := table()[string(s.Upper(args[0]))]
	if ok && c.container && len(args) > 1 {
		c, ok = table()[name(args[0])+"|"+name(args[1])]
	}
	return c, ok
}

// Do applies a command, whose name comes first, to the selected database. A *argument.ReplyError means that servers with
// the commands of the table refuse it, a *state.UnsupportedError that its effect is unknown. In both cases the keys
// are unchanged, unless the latter has Near set. All other errors come from the store.
//
// A log has only commands that its server executed. So unless that server is known to refuse the command too, the state
// differs from the server's after any error, and Lose has to be called. A command that reads a lost value loses the keys
// that it writes.
func Do(s *state.Server, args [][]byte) error {
	if err := s.DB.Err(); err != nil {
		return err
	}
	c, ok := find(s, args)
	if ok {
		s.Writer.Wrote(c.since)
	}
	switch {
	case !ok:
		return &state.UnsupportedError{Command: name(args[0]), Why: "kvferry does not know this command", Wild: true}
	case !syntax.Takes(c.Newest, len(args)):
		return state.Unsupported(name(args[0]), "kvferry knows this command with another number of arguments")
	case c.run == nil && !c.write && !c.wild:
		return nil
	case c.run == nil:
		return &state.UnsupportedError{Command: name(args[0]), Why: "kvferry does not follow its effect", Wild: c.wild}
	case s.DB.AnyLost() && spread(s, c, args):
		return s.DB.Err()
	}
	err := c.run(s, args)
	if serr := s.DB.Err(); serr != nil {
		return serr
	}
	return err
}

// cmdProducers is XCFGSET and XIDMPRECORD: what streams remember of idempotent producers changes no record.
func cmdProducers(_ *state.Server, a [][]byte) error {
	return &state.UnsupportedError{Command: name(a[0]), Why: "records cannot hold a stream's state of idempotent producers", Near: true}
}

// name returns how errors call a command.
func name(arg []byte) string { return string(bytes.ToUpper(arg[:min(len(arg), 64)])) }
