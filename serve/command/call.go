package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/resp"
)

// Call is one command of one client. Its arguments are valid until Run returns.
type Call struct {
	Ctx    context.Context
	Server *Server
	Client *Client
	Args   [][]byte // with the name
	W      *resp.Writer

	takeover func(ctx context.Context, conn net.Conn, rest []byte) error
}

// Hijack makes f the owner of the connection: after the command it gets the connection and the bytes that were
// received after the command. f owns it alone. The connection is closed when f returns.
func (c *Call) Hijack(f func(ctx context.Context, conn net.Conn, rest []byte) error) { c.takeover = f }

// ErrWeb closes the connection of a browser, as Redis does: any web page can make it send lines that are commands.
var ErrWeb = errors.New("POST or Host: is a line of HTTP; the connection is closed")

// LinkError is an error that ends the connection of a client although the connection works.
type LinkError struct{ Err error }

func (e *LinkError) Error() string { return e.Err.Error() }
func (e *LinkError) Unwrap() error { return e.Err }

// ErrReadOnly is the reply to commands that write.
var ErrReadOnly = argument.Refuse("READONLY You can't write against a read only replica.")

var errLoading = argument.Refuse("LOADING kvferry is loading the dataset")

// Takeover is the function of Hijack, nil if it was not called.
type Takeover = func(ctx context.Context, conn net.Conn, rest []byte) error

// Do runs a command and writes its reply. An error is one of the connection, which must be closed.
func (s *Server) Do(ctx context.Context, client *Client, w *resp.Writer, args [][]byte) (Takeover, error) {
	c := &Call{Ctx: ctx, Server: s, Client: client, Args: args, W: w}
	err := c.run()
	s.Stats.Commands.Add(1)
	if err == nil {
		return c.takeover, w.Err()
	}
	if _, damaged := errors.AsType[*DamagedError](err); errors.Is(err, ErrWeb) || w.Err() != nil && (damaged || errors.Is(err, resp.ErrChanged)) {
		return nil, &LinkError{err}
	}
	if w.Err() != nil || ctx.Err() != nil { // the reply is incomplete
		return nil, errors.Join(w.Err(), context.Cause(ctx))
	}
	s.Stats.Errors.Add(1)
	w.Error(replyText(err))
	return nil, nil
}

// run runs a command, or leaves it to EXEC.
func (c *Call) run() error {
	cmd, err := c.check()
	m := c.Client.multi
	if err == nil && m != nil && !slices.Contains(inMulti, cmd.Name) {
		if err = c.queue(cmd); err == nil {
			return nil
		}
	}
	switch {
	case err == nil:
		return c.execute(cmd)
	case m != nil && (cmd == nil || !slices.Contains(inMulti, cmd.Name)):
		m.broken = true
	}
	if cmd != nil {
		cmd.stats.rejected.Add(1)
	}
	return err
}

// execute runs a command, again if tables had to be sorted for it.
func (c *Call) execute(cmd *Command) error {
	c.Client.last.Store(&cmd.Name)
	began := time.Now()
	err := cmd.Run(c)
	var order *UnorderedError
	if errors.As(err, &order) && c.W.Err() == nil {
		if err = order.Sort(); err == nil {
			err = cmd.Run(c)
		}
	}
	cmd.stats.calls.Add(1)
	cmd.stats.micros.Add(time.Since(began).Microseconds())
	if err != nil {
		cmd.stats.failed.Add(1)
	}
	return err
}

// check finds the command and checks its arguments. It returns nil for an unknown command.
func (c *Call) check() (*Command, error) {
	cmd, err := c.Server.Table.lookup(c.Args)
	switch {
	case cmd == nil && (Lower(c.Args[0]) == "post" || Lower(c.Args[0]) == "host:"):
		return nil, ErrWeb
	case cmd == nil:
		return nil, unknown(c.Args)
	case err != nil:
		return cmd, err
	case !cmd.fits(len(c.Args)):
		return cmd, wrongArgs(cmd.Name)
	case c.Server.Password != "" && !c.Client.Authenticated && !cmd.Has("no_auth"):
		return cmd, argument.Refuse("NOAUTH Authentication required.")
	}
	if c.Server.loading.Load() {
		if !cmd.Has("loading") {
			return cmd, errLoading
		}
	} else if db := &c.Client.DB; !db.Exists { // it was chosen when the databases were unknown
		*db = c.Server.Database(db.Number)
	}
	if err := c.route(cmd); err != nil {
		return cmd, err
	}
	switch {
	case cmd.Run == nil:
		return cmd, ErrReadOnly
	case c.Client.subs.any() && c.W.Proto < 3 && !slices.Contains(subscribed, cmd.Name):
		return cmd, argument.Refuse(fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", cmd.Name))
	}
	return cmd, nil
}

func wrongArgs(name string) error {
	return argument.Refuse(fmt.Sprintf("ERR wrong number of arguments for '%s' command", name))
}

// DamagedError means that rows of a key are damaged, or in a form that this build does not know.
type DamagedError struct {
	Key  []byte
	What string
}

// Error names the key.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the value of %s is damaged: %s", record.Quote(e.Key), e.What)
}

// UnorderedError means that tables are not in the order that lookups need. The command can be run again after Sort.
type UnorderedError struct {
	Err  error
	Sort func() error
}

func (e *UnorderedError) Error() string { return e.Err.Error() }
func (e *UnorderedError) Unwrap() error { return e.Err }

// replyText returns the text of an error reply.
func replyText(err error) string {
	var reply *argument.ReplyError
	switch {
	case errors.As(err, &reply):
		return reply.Text
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	var corrupt *record.CorruptError
	if errors.As(err, &corrupt) {
		return "ERR damaged: " + err.Error()
	}
	return "ERR " + err.Error()
}
