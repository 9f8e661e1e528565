package server

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/sys/pace"
)

// Command is a command about a key.
type Command struct {
	Key  []byte
	Name string
	args []any // without the key

	Reply any
	Err   error // the server refused it
	host  string
	asks  bool // send ASKING first: the slot is being migrated to host
}

// Router sends commands to the servers that have their keys.
type Router struct {
	*Options
	db      string
	owner   func(key []byte) string
	locate  func(context.Context) error // refreshes what owner returns; nil: a single server
	clients map[string]*Client
}

// Send sends commands, follows redirections and sets the replies.
func (r *Router) Send(ctx context.Context, commands ...*Command) error {
	for round := 0; len(commands) > 0; round++ {
		byNode := map[string][]*Command{}
		for _, k := range commands {
			if k.host == "" {
				k.host = r.owner(k.Key)
			}
			byNode[k.host] = append(byNode[k.host], k)
		}
		var again []*Command
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
					again, failed = append(again, k), k.Err
				}
			}
		}
		if commands = again; len(commands) == 0 {
			return nil
		}
		var answer redis.Error
		if round == Attempts || ctx.Err() != nil || !errors.As(failed, &answer) && (r.locate == nil || !IsBroken(failed)) {
			return failed
		}
		if err := pace.Rest(ctx, time.Duration(round)*PauseAfter); err != nil {
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

// Do sends a command about a key and returns its reply.
func (r *Router) Do(ctx context.Context, key []byte, name string, args ...any) (any, error) {
	k := &Command{Key: key, Name: name, args: args}
	if err := r.Send(ctx, k); err != nil {
		return nil, err
	}
	return k.Reply, k.Err
}

func (r *Router) client(host string) *Client {
	c := r.clients[host]
	if c == nil {
		c = r.To(host, r.db)
		r.clients[host] = c
	}
	return c
}

// Close closes the connections.
func (r *Router) Close() (err error) {
	for _, c := range r.clients {
		err = errors.Join(err, c.Close())
	}
	return err
}

// pipeline sends commands together and sets the replies.
func (c *Client) pipeline(ctx context.Context, list []*Command) error {
	return c.try(ctx, func(conn redis.Conn) (err error) {
		for _, k := range list {
			if k.asks {
				err = errors.Join(err, conn.Send("ASKING"))
			}
			err = errors.Join(err, conn.Send(k.Name, append([]any{k.Key}, k.args...)...))
		}
		if err = errors.Join(err, conn.Flush()); err != nil {
			return err
		}
		for _, k := range list {
			if k.asks {
				_, err := conn.Receive()
				if conn.Err() != nil {
					return err
				}
			}
			k.Reply, k.Err = conn.Receive()
			if conn.Err() != nil {
				return k.Err
			}
		}
		return nil
	})
}

// redirect reports whether the command must be sent again: to another server, or because the cluster is busy.
func (k *Command) redirect() bool {
	var answer redis.Error
	if !errors.As(k.Err, &answer) {
		return false
	}
	var moved bool
	k.host, k.asks, moved = Redirection(k.host, k.Err)
	return moved || IsBusy(k.Err)
}
