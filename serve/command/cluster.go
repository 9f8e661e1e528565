package command

import (
	"iter"
	"slices"

	"kvferry/internal/shared/argument"
)

// countAt is the place of the number of keys in the arguments of commands, which precedes the keys.
var countAt = map[string]int{"zinter": 1, "zunion": 1, "zdiff": 1, "sintercard": 1, "zintercard": 1, "lmpop": 1, "zmpop": 1,
	"blmpop": 2, "bzmpop": 2, "zunionstore": 2, "zinterstore": 2, "zdiffstore": 2,
	"eval": 2, "evalsha": 2, "fcall": 2, "eval_ro": 2, "evalsha_ro": 2, "fcall_ro": 2}

// keys yields the keys among the arguments of a command.
func (c *Command) keys(args [][]byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := c.First; i > 0 && i <= c.last(len(args)); i += c.Step {
			if !yield(args[i]) {
				return
			}
		}
		for _, key := range c.movable(args) {
			if !yield(key) {
				return
			}
		}
	}
}

// last is the place of the last key of those that follow First.
func (c *Command) last(n int) int {
	if c.Last < 0 {
		return n + c.Last
	}
	return min(c.Last, n-1)
}

// movable returns the keys that have no fixed place.
func (c *Command) movable(args [][]byte) [][]byte {
	switch c.Name {
	case "xread", "xreadgroup":
		at := slices.IndexFunc(args, func(a []byte) bool { return argument.Is(a, "STREAMS") })
		if at < 0 {
			return nil
		}
		return args[at+1 : at+1+(len(args)-at-1)/2]
	}
	at := countAt[c.Name]
	if at == 0 || at >= len(args) {
		return nil
	}
	n, err := argument.ParseInt(args[at])
	if err != nil || n < 0 || n > int64(len(args)-at-1) {
		return nil // the command refuses it
	}
	return args[at+1 : at+1+int(n)]
}

// route returns an error if the server has a part of the slots only, and not that of the keys.
func (c *Call) route(cmd *Command) error {
	if c.Server.Route == nil {
		return nil
	}
	return c.Server.Route(cmd.keys(c.Args))
}

// mode is the mode of the server in HELLO and INFO.
func (s *Server) mode() string {
	if s.Route != nil {
		return "cluster"
	}
	return "standalone"
}
