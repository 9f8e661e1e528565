package server

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/sys/pace"
)

// retries limits how often a client repeats a command.
const retries = 3

// Client sends commands to one server. It connects when it has to, and again when the connection broke. Its commands
// may run twice.
type Client struct {
	*Options
	host, db string

	mu   sync.Mutex
	conn redis.Conn // nil: not connected
}

// To returns a client for a database of a server.
func (o *Options) To(host, db string) *Client { return &Client{Options: o, host: host, db: db} }

// Do sends a command and returns its reply.
func (c *Client) Do(ctx context.Context, name string, args ...any) (reply any, err error) {
	err = c.try(ctx, func(conn redis.Conn) error {
		reply, err = conn.Do(name, args...)
		return err
	})
	return reply, err
}

// try calls f with a connection, and again if the connection breaks or the server is busy.
func (c *Client) try(ctx context.Context, f func(redis.Conn) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := 0; ; n++ {
		err := c.once(ctx, f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || n == retries || !IsBroken(err) && !IsBusy(err):
			return err
		}
		if err := pace.Rest(ctx, 8*time.Millisecond<<(3*n)); err != nil {
			return err
		}
	}
}

func (c *Client) once(ctx context.Context, f func(redis.Conn) error) error {
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
	err := Parsed(f(conn))
	if conn.Err() != nil { // later replies no longer belong to the commands
		_ = c.conn.Close()
		c.conn = nil
	}
	return err
}

// Close closes the connection.
func (c *Client) Close() error {
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

// Info returns a section of INFO.
func (c *Client) Info(ctx context.Context, section string) (map[string]string, error) {
	text, err := redis.String(c.Do(ctx, "INFO", section))
	return info(text), err
}

// AddDatabases adds the number of keys of each database that has any to counts.
func (c *Client) AddDatabases(ctx context.Context, counts map[string]int64) error {
	i, err := c.Info(ctx, "keyspace")
	for k, v := range i {
		name, ok := strings.CutPrefix(k, "db")
		text, _, _ := strings.Cut(strings.TrimPrefix(v, "keys="), ",")
		if n, e := strconv.ParseInt(text, 10, 64); ok && e == nil {
			counts[name] += n
		}
	}
	return err
}

// Scan calls f with each batch of keys that match a pattern. Keys may come more than once.
func (c *Client) Scan(ctx context.Context, pattern string, count int, f func(keys [][]byte) error) error {
	for cursor := "0"; ; {
		reply, err := redis.Values(c.Do(ctx, "SCAN", cursor, "MATCH", pattern, "COUNT", count))
		if err != nil {
			return err
		}
		var keys [][]byte
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			return ErrAnswer
		}
		if err := f(keys); err != nil || cursor == "0" {
			return err
		}
	}
}

// CodeLibrary is a function library of a server.
type CodeLibrary struct{ Name, Code string }

// Libraries returns the function libraries that match a pattern, with their code.
func (c *Client) Libraries(ctx context.Context, pattern string) ([]CodeLibrary, error) {
	list, err := redis.Values(c.Do(ctx, "FUNCTION", "LIST", "LIBRARYNAME", pattern, "WITHCODE"))
	var out []CodeLibrary
	for _, item := range list {
		fields, _ := item.([]any)
		var l CodeLibrary
		for i := 0; i+1 < len(fields); i += 2 {
			name, _ := redis.String(fields[i], nil)
			value, _ := redis.String(fields[i+1], nil) // or a list of functions
			switch name {
			case "library_name":
				l.Name = value
			case "library_code":
				l.Code = value
			}
		}
		out = append(out, l)
	}
	return out, err
}
