package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"kvferry/format"
)

// PipeSet is the pipes to the servers of a database, one to each.
type PipeSet struct {
	Ctx    context.Context
	cancel context.CancelCauseFunc
	server *Server
	DB     string

	mu    sync.Mutex
	to    map[string]*Pipe // by address
	moved bool             // the slot map is stale
}

// NewPipeSet returns an empty set; it ends with ctx.
func NewPipeSet(ctx context.Context, s *Server, db string) *PipeSet {
	p := &PipeSet{server: s, DB: db, to: map[string]*Pipe{}}
	p.Ctx, p.cancel = context.WithCancelCause(ctx)
	return p
}

// Of returns the pipe to the server of a key.
func (p *PipeSet) Of(key []byte) *Pipe { return p.At(p.server.Owner(key)) }

// At returns the pipe to an address.
func (p *PipeSet) At(host string) *Pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.to[host]
	if to == nil {
		to = newPipe(p.Ctx, func(ctx context.Context) (net.Conn, error) {
			l, err := p.server.Dial(ctx, host, p.DB)
			if err != nil {
				return nil, err
			}
			return l, nil
		})
		if p.server.Cluster {
			to.elsewhere, to.reroute = p.elsewhereFrom(host), p.reroute
			to.replaced = func(ctx context.Context) bool { return p.server.Replaced(ctx, host) }
		}
		p.to[host] = to
	}
	return to
}

// elsewhereFrom returns a function that follows redirections by a node.
func (p *PipeSet) elsewhereFrom(node string) func(data []byte, x Piece, answer error) error {
	return func(data []byte, x Piece, answer error) error {
		host, asks, ok := Redirection(node, answer)
		if !ok {
			return ErrAnswer
		}
		if asks {
			data, x.Commands = withAsking(data)
		} else {
			p.mu.Lock()
			p.moved = true
			p.mu.Unlock()
		}
		p.At(host).pass(data, x)
		return nil
	}
}

// reroute sends a piece to the current owner of its slot, or to all masters if it loads a function library.
func (p *PipeSet) reroute(from *Pipe, data []byte, x Piece) error {
	hosts := p.server.Hosts()
	if key := x.key(data); key != nil {
		hosts = []string{p.server.Owner(key)}
	}
	for _, host := range hosts {
		to := p.At(host)
		if to == from { // its lock is held
			return &format.LostError{Err: fmt.Errorf("%s cannot be reached, and the cluster knows no other server in its place",
				host)}
		}
		to.pass(data, x)
	}
	return nil
}

// Relocate refreshes the slot map after a MOVED reply.
func (p *PipeSet) Relocate() error {
	p.mu.Lock()
	moved := p.moved
	p.moved = false
	p.mu.Unlock()
	if !moved {
		return nil
	}
	return p.server.Locate(p.Ctx)
}

// Drain waits until all pieces are acknowledged.
func (p *PipeSet) Drain() error {
	for again := true; again; {
		again = false
		for _, to := range p.all() {
			if err := to.drained(); err != nil {
				return err
			}
		}
		for _, to := range p.all() { // a redirected piece may have gone to a pipe drained before
			again = again || to.busy()
		}
	}
	return nil
}

// Close waits until all pieces are acknowledged, unless the writer has failed.
func (p *PipeSet) Close(err error) error {
	if err == nil {
		err = p.Drain()
	}
	if err != nil {
		p.cancel(err)
	}
	for _, to := range p.all() {
		err = cmp.Or(err, to.close())
	}
	p.cancel(nil)
	return Explain(p.server.Shown, err)
}

// Abort stops sending.
func (p *PipeSet) Abort() {
	p.cancel(errors.New("stopped"))
	for _, to := range p.all() {
		<-to.done
	}
}

// Temporary lists the temporary names in the unacknowledged pieces of ended pipes.
func (p *PipeSet) Temporary() (names []string) {
	for _, to := range p.all() {
		names = append(names, to.temporary()...)
	}
	return names
}

func (p *PipeSet) all() []*Pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.to))
}
