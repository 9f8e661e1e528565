package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"kvferry/format"
)

// pipes lead to the servers of a database, one to each.
type pipes struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	server *server
	db     string

	mu    sync.Mutex
	to    map[string]*pipe // by address
	moved bool             // the slot map is stale
}

func newPipes(ctx context.Context, s *server, db string) *pipes {
	p := &pipes{server: s, db: db, to: map[string]*pipe{}}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	return p
}

// of returns the pipe to the server of a key.
func (p *pipes) of(key []byte) *pipe { return p.at(p.server.owner(key)) }

// at returns the pipe to an address.
func (p *pipes) at(host string) *pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.to[host]
	if to == nil {
		to = newPipe(p.ctx, func(ctx context.Context) (net.Conn, error) {
			l, err := p.server.bulk(ctx, host, p.db)
			if err != nil {
				return nil, err
			}
			return l, nil
		})
		if p.server.cluster {
			to.elsewhere, to.reroute = p.elsewhereFrom(host), p.reroute
			to.replaced = func(ctx context.Context) bool { return p.server.replaced(ctx, host) }
		}
		p.to[host] = to
	}
	return to
}

// elsewhereFrom returns a function that follows redirections by a node.
func (p *pipes) elsewhereFrom(node string) func(data []byte, x piece, answer error) error {
	return func(data []byte, x piece, answer error) error {
		host, asks, ok := redirection(node, answer)
		if !ok {
			return errAnswer
		}
		if asks {
			data, x.commands = withAsking(data)
		} else {
			p.mu.Lock()
			p.moved = true
			p.mu.Unlock()
		}
		p.at(host).pass(data, x)
		return nil
	}
}

// reroute sends a piece to the current owner of its slot, or to all masters if it loads a function library.
func (p *pipes) reroute(from *pipe, data []byte, x piece) error {
	hosts := p.server.hosts()
	if key := x.key(data); key != nil {
		hosts = []string{p.server.owner(key)}
	}
	for _, host := range hosts {
		to := p.at(host)
		if to == from { // its lock is held
			return &format.LostError{Err: fmt.Errorf("%s cannot be reached, and the cluster knows no other server in its place", host)}
		}
		to.pass(data, x)
	}
	return nil
}

// relocate refreshes the slot map after a MOVED reply.
func (p *pipes) relocate() error {
	p.mu.Lock()
	moved := p.moved
	p.moved = false
	p.mu.Unlock()
	if !moved {
		return nil
	}
	return p.server.locate(p.ctx)
}

// close waits until all pieces are acknowledged, unless the writer has failed.
func (p *pipes) close(err error) error {
	for again := true; again && err == nil; {
		again = false
		for _, to := range p.all() {
			if err == nil {
				err = to.drained()
			}
		}
		for _, to := range p.all() { // a redirected piece may have gone to a pipe drained before
			again = again || to.busy()
		}
	}
	if err != nil {
		p.cancel(err)
	}
	for _, to := range p.all() {
		if e := to.close(); err == nil {
			err = e
		}
	}
	p.cancel(nil)
	return told(p.server.shown, err)
}

// abort stops sending.
func (p *pipes) abort() {
	p.cancel(errors.New("stopped"))
	for _, to := range p.all() {
		<-to.done
	}
}

// temporary lists the temporary names in the unacknowledged pieces of ended pipes.
func (p *pipes) temporary() (names []string) {
	for _, to := range p.all() {
		names = append(names, to.temporary()...)
	}
	return names
}

func (p *pipes) all() []*pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.to))
}
