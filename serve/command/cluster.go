package command

import "slices"

// keys returns the keys among the arguments of a command.
func (c *Command) keys(args [][]byte) [][]byte {
	fixed, counted, whole := c.Keys(args)
	if !whole { // the command refuses it
		return fixed
	}
	return append(fixed, counted...)
}

// route returns an error if the server has a part of the slots only, and not that of the keys.
func (c *Call) route(cmd *Command) error {
	if c.Server.Route == nil {
		return nil
	}
	return c.Server.Route(slices.Values(cmd.keys(c.Args)))
}

// mode is the mode of the server in HELLO and INFO.
func (s *Server) mode() string {
	if s.Route != nil {
		return "cluster"
	}
	return "standalone"
}
