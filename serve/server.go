// Package serve answers Redis clients from a dataset on disk, also as a node of a cluster.
package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"kvferry/serve/command"
	"kvferry/serve/command/collections"
	"kvferry/serve/command/keys"
	"kvferry/serve/resp"
)

// stall limits the time that a client may accept no bytes of a reply or stop within a request.
const stall = 60 * time.Second

// maxRequest is the largest request in bytes.
const maxRequest = 8 << 20

// Server serves clients.
type Server struct {
	*command.Server
	// Log receives messages for the operator; may be nil.
	Log func(text string)

	wg sync.WaitGroup
}

// Commands returns the commands on keys and values, and some more, which replace others of their name.
func Commands(more ...command.Functions) []command.Functions {
	return slices.Concat(keys.Commands(), collections.Commands(), more)
}

// New completes a server, which answers all commands and some more.
func New(s *command.Server, more ...command.Functions) *Server {
	s.Init(Commands(more...)...)
	var id [20]byte
	_, _ = rand.Read(id[:]) // does not fail
	s.RunID = hex.EncodeToString(id[:])
	return &Server{Server: s}
}

// Serve accepts connections until ctx is done, closes all of them, and returns when their commands have ended. It
// closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Context = ctx
	stop := context.AfterFunc(ctx, func() {
		for _, l := range listeners {
			_ = l.Close() // ends Accept
		}
	})
	defer stop()
	for _, l := range listeners {
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			if err := s.accept(ctx, l); err != nil {
				cancel(err)
			}
		}()
	}
	<-ctx.Done()
	s.wg.Wait()
	if err := s.Close(); err != nil {
		return err
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// accept accepts connections of a listener until ctx is done.
func (s *Server) accept(ctx context.Context, l net.Listener) error {
	wait := time.Millisecond
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close() // no request was read
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // such as too many open files, which passes
			s.log(fmt.Sprintf("cannot accept a connection: %v", err))
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, time.Second)
			continue
		}
		wait = time.Millisecond
		s.Stats.Connections.Add(1)
		if s.Clients.Len() >= s.MaxClients {
			s.refuse(conn)
			continue
		}
		c := newClient(s, conn)
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			c.serve(ctx)
		}()
	}
}

// refuse closes a connection over the limit of clients.
func (s *Server) refuse(conn net.Conn) {
	s.Stats.Refused.Add(1)
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(conn, "-ERR max number of clients reached\r\n") // the client may be gone already
	_ = conn.Close()
}

func (s *Server) log(text string) {
	if s.Log != nil {
		s.Log(text)
	}
}

// client is a connection.
type client struct {
	*command.Client
	s    *Server
	conn net.Conn
	r    *resp.Reader
	w    *resp.Writer
}

func newClient(s *Server, conn net.Conn) *client {
	c := &client{s: s, conn: conn}
	c.Client = &command.Client{Addr: conn.RemoteAddr().String(), Here: conn.LocalAddr().String(),
		Kill: func() { _ = conn.Close() }, DB: s.Database(0)}
	c.r, c.w = resp.NewReader(countedReader{c}), resp.NewWriter(countedWriter{c})
	c.r.Limit, c.r.Grow, c.r.Shrink = maxRequest, s.TakeRequest, s.GiveRequest
	c.Gone = c.gone
	s.Clients.Add(c.Client)
	return c
}

// gone reports whether the client has closed the connection. It keeps requests that it meets.
func (c *client) gone() bool {
	room := c.r.Room()
	if len(room) == 0 || c.conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	n, err := c.conn.Read(room)
	c.r.Add(n)
	c.s.Stats.In.Add(int64(n))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = c.conn.SetReadDeadline(time.Time{})
	}
	return err != nil
}

// serve answers requests until the connection ends.
func (c *client) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, c.Kill)
	defer func() {
		stop()
		c.r.Close()
		c.s.Leave(c.Client)
		_ = c.conn.Close() // replies were flushed
	}()
	for {
		args, err := c.r.Next()
		if err != nil {
			c.end(err)
			return
		}
		take, err := c.s.Do(ctx, c.Client, c.w, args)
		if err == nil && (take != nil || c.r.Buffered() == 0) {
			err = c.w.Flush()
		}
		if err != nil {
			if _, ok := errors.AsType[*command.LinkError](err); ok {
				c.s.log(fmt.Sprintf("client %s: %v", c.Addr, err))
			}
			return
		}
		if take != nil {
			c.Feeding.Store(true)
			if err := take(ctx, c.conn, c.r.Rest()); err != nil && ctx.Err() == nil {
				c.s.log(fmt.Sprintf("client %s: %v", c.Addr, err))
			}
			return
		}
	}
}

// end replies to a request that cannot be parsed.
func (c *client) end(err error) {
	var protocol *resp.ProtocolError
	switch {
	case errors.As(err, &protocol):
		c.w.Error("ERR " + protocol.Error())
	case errors.Is(err, command.ErrRequests):
		c.w.Error("ERR " + err.Error())
	}
	if c.w.Err() == nil {
		_ = c.w.Flush() // the connection ends anyway
	}
}

type countedReader struct{ c *client }

func (r countedReader) Read(b []byte) (int, error) {
	if err := r.c.w.Flush(); err != nil { // of pipelined commands before an incomplete one
		return 0, err
	}
	deadline := time.Time{}
	if r.c.r.Buffered() > 0 { // a part of a request
		deadline = time.Now().Add(stall)
	}
	if err := r.c.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err := r.c.conn.Read(b)
	r.c.s.Stats.In.Add(int64(n))
	return n, err
}

type countedWriter struct{ c *client }

// Write writes all of b. It fails if the client accepts no bytes for a minute.
func (w countedWriter) Write(b []byte) (n int, err error) {
	w.c.Stalled.Store(time.Now().UnixNano())
	defer w.c.Stalled.Store(0)
	for n < len(b) && err == nil {
		if err = w.c.conn.SetWriteDeadline(time.Now().Add(stall)); err == nil {
			var some int
			some, err = w.c.conn.Write(b[n:min(len(b), n+64<<10)])
			n += some
			w.c.Stalled.Store(time.Now().UnixNano())
		}
	}
	w.c.s.Stats.Out.Add(int64(n))
	return n, err
}
