package live

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/sys/pace"
)

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
	var moved bool
	k.host, k.asks, moved = redirection(k.host, k.err)
	return moved || isBusy(k.err)
}
