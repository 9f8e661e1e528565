package commands

import (
	"bytes"

	"kvferry/internal/shared/argument"
	"kvferry/redis/state/server"
)

// flags are the properties of a command in COMMAND's reply that matter here.
type flags uint8

const (
	write     flags = 1 << iota // it may change keys
	wild                        // it may change keys that its arguments do not name, as a script may
	container                   // it has subcommands, which the table has by both names
)

// command describes a command of a server.
type command struct {
	arity int // arguments, the name among them; negative: at least so many
	flags flags
	keys  finder // nil: it has no keys
	// run applies it; nil for a command that changes no keys or, with write or wild, whose effect is not
	// followed.
	run func(*server.Server, [][]byte) error
}

// takes reports whether a command accepts n arguments.
func (c *command) takes(n int) bool { return n == c.arity || c.arity < 0 && n >= -c.arity }

// find returns the command named by args; false if no server has it.
func find(s *server.Server, args [][]byte) (*command, bool) {
	c, ok := table[string(s.Upper(args[0]))]
	if ok && c.flags&container != 0 && len(args) > 1 {
		c, ok = table[name(args[0])+" "+name(args[1])]
	}
	return c, ok
}

// Do applies a command, whose name comes first, to the selected database. A *argument.ReplyError means that a
// server would have refused it, a *server.UnsupportedError that its effect is unknown. In both cases the keys
// are unchanged, unless the latter has Near set. All other errors come from the store.
//
// After an UnsupportedError the state differs from the server's, unless Lose is called. A command that reads a
// lost value loses the keys that it writes.
func Do(s *server.Server, args [][]byte) error {
	if err := s.DB.Err(); err != nil {
		return err
	}
	c, ok := find(s, args)
	switch {
	case !ok:
		return &server.UnsupportedError{Command: name(args[0]), Why: "kvferry does not know this command", Wild: true}
	case !c.takes(len(args)):
		return argument.ErrArgs
	case c.run == nil && c.flags&(write|wild) == 0:
		return nil
	case c.run == nil:
		return &server.UnsupportedError{Command: name(args[0]), Why: "kvferry does not follow its effect", Wild: c.flags&wild != 0}
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
func cmdProducers(_ *server.Server, a [][]byte) error {
	return &server.UnsupportedError{Command: name(a[0]), Why: "records have no place for what a stream remembers of idempotent producers", Near: true}
}

// name returns how errors call a command.
func name(arg []byte) string { return string(bytes.ToUpper(arg[:min(len(arg), 64)])) }
