package live

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/sys/pace"
)

// retries limits how often a client repeats a command.
const retries = 3

// client sends commands to one server. It connects when it has to, and again when the connection broke. Its commands
// may run twice.
type client struct {
	*options
	host, db string

	mu   sync.Mutex
	conn redis.Conn // nil: not connected
}

// to returns a client for a database of a server.
func (o *options) to(host, db string) *client { return &client{options: o, host: host, db: db} }

// do sends a command and returns its reply.
func (c *client) do(ctx context.Context, name string, args ...any) (reply any, err error) {
	err = c.try(ctx, func(conn redis.Conn) error {
		reply, err = conn.Do(name, args...)
		return err
	})
	return reply, err
}

// try calls f with a connection, and again if the connection breaks or the server is busy.
func (c *client) try(ctx context.Context, f func(redis.Conn) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := 0; ; n++ {
		err := c.once(ctx, f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || n == retries || !isBroken(err) && !isBusy(err):
			return err
		}
		if err := pace.Rest(ctx, 8*time.Millisecond<<(3*n)); err != nil {
			return err
		}
	}
}

func (c *client) once(ctx context.Context, f func(redis.Conn) error) error {
	if c.conn == nil {
		l, err := c.open(ctx, c.host, c.db, nil)
		if err != nil {
			return err
		}
		c.conn = redis.NewConn(l, 0, 0)
	}
	conn := c.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	err := parsed(f(conn))
	if conn.Err() != nil { // later replies no longer belong to the commands
		_ = c.conn.Close()
		c.conn = nil
	}
	return err
}

// close closes the connection.
func (c *client) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	return err
}

// info parses a reply of INFO.
func info(text string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(text, "\r\n") {
		if k, v, ok := strings.Cut(line, ":"); ok {
			out[k] = v
		}
	}
	return out
}

// info returns a section of INFO.
func (c *client) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := redis.String(c.do(ctx, "INFO", section))
	return info(text), err
}

// size returns the number of keys.
func (c *client) size(ctx context.Context) (int64, error) {
	return redis.Int64(c.do(ctx, "DBSIZE"))
}

// scan calls f with each batch of keys that match a pattern. Keys may come more than once.
func (c *client) scan(ctx context.Context, pattern string, count int, f func(keys [][]byte) error) error {
	for cursor := "0"; ; {
		reply, err := redis.Values(c.do(ctx, "SCAN", cursor, "MATCH", pattern, "COUNT", count))
		if err != nil {
			return err
		}
		var keys [][]byte
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			return errAnswer
		}
		if err := f(keys); err != nil || cursor == "0" {
			return err
		}
	}
}

// codeLibrary is a function library of a server.
type codeLibrary struct{ name, code string }

// libraries returns the function libraries that match a pattern, with their code.
func (c *client) libraries(ctx context.Context, pattern string) ([]codeLibrary, error) {
	list, err := redis.Values(c.do(ctx, "FUNCTION", "LIST", "LIBRARYNAME", pattern, "WITHCODE"))
	var out []codeLibrary
	for _, item := range list {
		fields, _ := item.([]any)
		var l codeLibrary
		for i := 0; i+1 < len(fields); i += 2 {
			name, _ := redis.String(fields[i], nil)
			value, _ := redis.String(fields[i+1], nil) // or a list of functions
			switch name {
			case "library_name":
				l.name = value
			case "library_code":
				l.code = value
			}
		}
		out = append(out, l)
	}
	return out, err
}
