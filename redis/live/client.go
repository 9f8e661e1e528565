package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
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
		case err == nil || n == retries || !isBroken(err) && !isBusyError(err):
			return err
		}
		if err := pace.Rest(ctx, 8*time.Millisecond<<(3*n)); err != nil {
			return err
		}
	}
}

func (c *client) once(ctx context.Context, f func(redis.Conn) error) error {
	if c.conn == nil {
		l, err := c.dial(ctx, c.host)
		if err != nil {
			return err
		}
		l.guard = newGuard(c.bound())
		if err := greet(ctx, l, func(ask asking) error { return c.login(ask, c.db) }); err != nil {
			l.Close()
			return err
		}
		c.conn = redis.NewConn(l, 0, 0)
	}
	conn := c.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	err := f(conn)
	if err != nil && strings.HasPrefix(err.Error(), "redigo: ") { // of its parser
		err = fmt.Errorf("%w (%w)", errAnswer, err)
	}
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

// isBusyError reports whether an error is the reply of a server that cannot answer yet.
func isBusyError(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && isBusy("-"+answer.Error())
}

// info returns a section of INFO.
func (c *client) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := redis.String(c.do(ctx, "INFO", section))
	return info(text), err
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

// slotRange is a range of slots and the addresses of its nodes, the master first.
type slotRange struct {
	start, end int
	nodes      []string
}

// slots returns the slot map that a node of a cluster has.
func (c *client) slots(ctx context.Context) ([]slotRange, error) {
	list, err := redis.Values(c.do(ctx, "CLUSTER", "SLOTS")) // servers before 7.0 have no CLUSTER SHARDS
	if err != nil {
		return nil, err
	}
	var out []slotRange
	for _, item := range list {
		fields, err := redis.Values(item, nil)
		if err != nil || len(fields) < 2 {
			return nil, errAnswer
		}
		var r slotRange
		if fields, err = redis.Scan(fields, &r.start, &r.end); err != nil {
			return nil, errAnswer
		}
		for _, field := range fields {
			node, err := redis.Values(field, nil)
			if err != nil || len(node) < 2 {
				return nil, errAnswer
			}
			host, _ := redis.String(node[0], nil) // nil: the client knows it
			port, err := redis.Int(node[1], nil)
			if err != nil {
				return nil, errAnswer
			}
			r.nodes = append(r.nodes, net.JoinHostPort(host, strconv.Itoa(port)))
		}
		out = append(out, r)
	}
	return out, nil
}

// keyed is a command about a key.
type keyed struct {
	key  []byte
	name string
	args []any // without the key

	reply any
	err   error // the server refused it
	host  string
	asks  bool // send ASKING first: the slot is being migrated to host
}

// router sends commands to the servers that have their keys.
type router struct {
	*options
	db      string
	owner   func(key []byte) string
	locate  func(context.Context) error // refreshes what owner returns; nil: a single server
	clients map[string]*client
}

// send sends commands, follows redirections and sets the replies.
func (r *router) send(ctx context.Context, commands ...*keyed) error {
	for round := 0; len(commands) > 0; round++ {
		byNode := map[string][]*keyed{}
		for _, k := range commands {
			if k.host == "" {
				k.host = r.owner(k.key)
			}
			byNode[k.host] = append(byNode[k.host], k)
		}
		var again []*keyed
		var failed error
		for host, list := range byNode {
			if err := r.client(host).pipeline(ctx, list); err != nil {
				for _, k := range list {
					k.host, k.asks = "", false // it may have another owner now
				}
				again, failed = append(again, list...), err
				continue
			}
			for _, k := range list {
				if k.redirect() {
					again, failed = append(again, k), k.err
				}
			}
		}
		if commands = again; len(commands) == 0 {
			return nil
		}
		var answer redis.Error
		if round == attempts || ctx.Err() != nil || !errors.As(failed, &answer) && (r.locate == nil || !isBroken(failed)) {
			return failed
		}
		if err := pace.Rest(ctx, time.Duration(round)*pauseAfter); err != nil {
			return err
		}
		if r.locate != nil {
			if err := r.locate(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// do sends a command about a key and returns its reply.
func (r *router) do(ctx context.Context, key []byte, name string, args ...any) (any, error) {
	k := &keyed{key: key, name: name, args: args}
	if err := r.send(ctx, k); err != nil {
		return nil, err
	}
	return k.reply, k.err
}

func (r *router) client(host string) *client {
	c := r.clients[host]
	if c == nil {
		c = r.to(host, r.db)
		r.clients[host] = c
	}
	return c
}

func (r *router) close() (err error) {
	for _, c := range r.clients {
		err = errors.Join(err, c.close())
	}
	return err
}

// pipeline sends commands together and sets the replies.
func (c *client) pipeline(ctx context.Context, list []*keyed) error {
	return c.try(ctx, func(conn redis.Conn) (err error) {
		for _, k := range list {
			if k.asks {
				err = errors.Join(err, conn.Send("ASKING"))
			}
			err = errors.Join(err, conn.Send(k.name, append([]any{k.key}, k.args...)...))
		}
		if err = errors.Join(err, conn.Flush()); err != nil {
			return err
		}
		for _, k := range list {
			if k.asks {
				if _, err := conn.Receive(); conn.Err() != nil {
					return err
				}
			}
			if k.reply, k.err = conn.Receive(); conn.Err() != nil {
				return k.err
			}
		}
		return nil
	})
}

// redirect reports whether the command must be sent again: to another server, or because the cluster is busy.
func (k *keyed) redirect() bool {
	var answer redis.Error
	if !errors.As(k.err, &answer) {
		return false
	}
	from := k.host
	k.host, k.asks = "", false
	words := strings.Fields(answer.Error())
	if len(words) == 3 && (words[0] == "MOVED" || words[0] == "ASK") {
		k.host, k.asks = addressFrom(from, words[2]), words[0] == "ASK"
		return true
	}
	return isBusyError(k.err)
}
