package command

import (
	"fmt"
	"slices"

	"kvferry/internal/shared/argument"
)

// kind is the type of a connection for CLIENT LIST and CLIENT KILL.
func (cl *Client) kind() string {
	switch {
	case cl.Feeding.Load():
		return "replica"
	case cl.pubsub.Load():
		return "pubsub"
	}
	return "normal"
}

// clientKind parses a type of connections.
func clientKind(arg []byte) (string, error) {
	kind := Lower(arg)
	if kind == "slave" {
		kind = "replica"
	}
	if !slices.Contains([]string{"normal", "master", "replica", "pubsub"}, kind) {
		return "", argument.Refuse(fmt.Sprintf("ERR Unknown client type '%s'", cut(arg, 128)))
	}
	return kind, nil
}

// line describes a connection for CLIENT LIST.
func (cl *Client) line() string {
	cmd, flags := "NULL", map[string]string{"normal": "N", "replica": "S", "pubsub": "P"}[cl.kind()]
	if p := cl.last.Load(); p != nil {
		cmd = *p
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s flags=%s db=%d user=default cmd=%s resp=%d", cl.ID, cl.Addr, cl.Here, cl.nameText(), flags,
		cl.db.Load(), cmd, cl.proto.Load())
}

func clientList(c *Call) error {
	list := c.Server.Clients.all()
	var leave func(*Client) bool // out of the list
	switch n := len(c.Args); {
	case n == 2:
	case n == 4 && argument.Is(c.Args[2], "TYPE"):
		kind, err := clientKind(c.Args[3])
		if err != nil {
			return err
		}
		leave = func(cl *Client) bool { return cl.kind() != kind }
	case n > 3 && argument.Is(c.Args[2], "ID"):
		ids, err := c.Ints(3, n-3)
		if err != nil || slices.Min(ids) < 1 {
			return argument.Refuse("ERR Invalid client ID")
		}
		leave = func(cl *Client) bool { return !slices.Contains(ids, cl.ID) }
	default:
		return argument.ErrSyntax
	}
	text := ""
	for _, cl := range list {
		if leave == nil || !leave(cl) {
			text += cl.line() + "\n"
		}
	}
	c.W.Verbatim(text)
	return nil
}

// killFilter selects the connections of CLIENT KILL.
type killFilter struct {
	id                int64
	kind, addr, laddr string
	skipMe            bool
}

func (f *killFilter) option(name string, value []byte) (err error) {
	switch name {
	case "id":
		if f.id, err = argument.ParseInt(value); err != nil || f.id < 1 {
			err = argument.Refuse("ERR client-id should be greater than 0")
		}
	case "type":
		f.kind, err = clientKind(value)
	case "addr":
		f.addr = string(value)
	case "laddr":
		f.laddr = string(value)
	case "user":
		if string(value) != "default" {
			err = argument.Refuse(fmt.Sprintf("ERR No such user '%s'", cut(value, 128)))
		}
	case "skipme":
		if f.skipMe = argument.Is(value, "YES"); !f.skipMe && !argument.Is(value, "NO") {
			err = argument.ErrSyntax
		}
	default:
		err = argument.ErrSyntax
	}
	return err
}

// clientKill closes the connections that match an address or all options.
func clientKill(c *Call) error {
	f, old := killFilter{skipMe: true}, len(c.Args) == 3
	if old {
		f = killFilter{addr: string(c.Args[2])}
	} else if len(c.Args)%2 == 1 {
		return argument.ErrSyntax
	}
	for i := 2; !old && i < len(c.Args); i += 2 {
		if err := f.option(Lower(c.Args[i]), c.Args[i+1]); err != nil {
			return err
		}
	}
	killed, self := int64(0), false
	for _, cl := range c.Server.Clients.all() {
		if f.id != 0 && cl.ID != f.id || f.kind != "" && cl.kind() != f.kind || f.addr != "" && cl.Addr != f.addr ||
			f.laddr != "" && cl.Here != f.laddr || f.skipMe && cl == c.Client {
			continue
		}
		killed++
		if self = self || cl == c.Client; cl != c.Client {
			cl.Kill()
		}
	}
	switch {
	case !old:
		c.W.Int(killed)
	case killed == 0:
		return argument.Refuse("ERR No such client")
	default:
		c.W.OK()
	}
	if self { // the reply comes first
		return c.end()
	}
	return nil
}

// clientUnblock replies 0: no client is ever blocked.
func clientUnblock(c *Call) error {
	switch _, err := argument.ParseInt(c.Args[2]); {
	case len(c.Args) > 3 && !argument.Is(c.Args[3], "TIMEOUT") && !argument.Is(c.Args[3], "ERROR"):
		return argument.Refuse("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	case err != nil:
		return err
	}
	return zero(c)
}

func clientPause(c *Call) error {
	if len(c.Args) > 3 && !argument.Is(c.Args[3], "WRITE") && !argument.Is(c.Args[3], "ALL") {
		return argument.Refuse("ERR CLIENT PAUSE mode must be WRITE or ALL")
	}
	if err := Timeout(c.Args[2]); err != nil {
		return err
	}
	return ok(c)
}

// Timeout checks a timeout in milliseconds. No command waits.
func Timeout(arg []byte) error {
	switch n, err := argument.ParseInt(arg); {
	case err != nil:
		return argument.Refuse("ERR timeout is not an integer or out of range")
	case n < 0:
		return argument.Refuse("ERR timeout is negative")
	}
	return nil
}

// Wait returns WAIT, which replies with the number of replicas at once.
func Wait(replicas func() int64) func(*Call) error {
	return func(c *Call) error {
		if _, err := argument.ParseInt(c.Args[1]); err != nil {
			return err
		}
		if err := Timeout(c.Args[2]); err != nil {
			return err
		}
		c.W.Int(replicas())
		return nil
	}
}

// has reports whether a connection is open.
func (cs *Clients) has(id int64) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.open[id] != nil
}
