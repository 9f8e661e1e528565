package server

import (
	"context"
	"net"
	"slices"
	"sync"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/resp"
)

// A pipe loads a server like redis-cli --pipe: one goroutine writes a stream of commands and another reads the
// replies, with a bound on the unacknowledged bytes. Bytes stay in memory until the server acknowledges them, so a pipe
// can reconnect and resend them: all pieces but RENAME are idempotent, and the pipe checks whether an unanswered RENAME
// took effect.

const (
	// batchSize is the approximate size of a write.
	batchSize = 64 << 10
	// maxUnderWay limits the unacknowledged bytes of a connection; a single piece may exceed it.
	maxUnderWay = 4 << 20
)

// Pipe sends pieces to a server without waiting for replies. Only pass may be called from other goroutines.
type Pipe struct {
	ctx  context.Context
	dial func(context.Context) (net.Conn, error)
	// elsewhere handles a MOVED or ASK reply to a piece; nil outside a cluster.
	elsewhere func(data []byte, p Piece, answer error) error
	// replaced reports whether an unreachable server lost its slots to another one; reroute sends a piece to the new
	// owner. Both are nil outside a cluster.
	replaced func(context.Context) bool
	reroute  func(from *Pipe, data []byte, p Piece) error

	mu       sync.Mutex
	changed  sync.Cond
	queue    []*batch // batches with unacknowledged pieces, in order
	written  int      // batches at the head of queue written to this connection
	writing  *batch   // the last of them; its reply may arrive before its Write returns, so it must not be reused
	answered int      // acknowledged pieces of queue[0]
	left     int      // unanswered commands of the next piece
	bytes    int64
	total    int64 // pieces acknowledged over all connections
	passed   bool  // the next piece went to another server: ignore its remaining replies
	careful  int   // number of batches to send one at a time, after a connection broke before any reply
	closing  bool
	broken   error // error of this connection
	err      error // final error
	free     []*batch
	current  *batch
	done     chan struct{}
}

// newPipe starts a pipe.
func newPipe(ctx context.Context, dial func(context.Context) (net.Conn, error)) *Pipe {
	p := &Pipe{ctx: ctx, dial: dial, done: make(chan struct{}), current: new(batch)}
	p.changed.L = &p.mu
	stop := context.AfterFunc(ctx, func() { p.fail(context.Cause(ctx)) })
	go func() {
		defer close(p.done)
		defer stop()
		p.run()
	}()
	return p
}

// Add queues a piece. It blocks while too many bytes are unacknowledged. The pipe takes ownership of data longer than
// bufpool.Large.
func (p *Pipe) Add(data []byte, x Piece) error {
	if x.Commands == 0 {
		return nil
	}
	if len(data) > bufpool.Large {
		if err := p.Flush(); err != nil {
			return err
		}
		x.end = len(data)
		p.current = &batch{data: data, pieces: []Piece{x}}
		return p.Flush()
	}
	b := p.current
	b.data = append(b.data, data...)
	x.end = len(b.data)
	b.pieces = append(b.pieces, x)
	if len(b.data) < batchSize {
		return nil
	}
	return p.Flush()
}

// Flush queues the current batch.
func (p *Pipe) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.bytes >= maxUnderWay {
		p.changed.Wait()
	}
	if p.err == nil && len(p.current.pieces) > 0 {
		p.enqueue(p.current)
		p.current = p.empty()
	}
	return p.err
}

// pass queues a piece that another server redirected. Any goroutine may call it; it does not block.
func (p *Pipe) pass(data []byte, x Piece) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.end = len(data)
	p.enqueue(&batch{data: append([]byte(nil), data...), pieces: []Piece{x}})
}

func (p *Pipe) enqueue(b *batch) {
	p.queue = append(p.queue, b)
	p.bytes += int64(len(b.data))
	p.changed.Broadcast()
}

func (p *Pipe) empty() *batch {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return new(batch)
}

// Conclude ends a record that was sent under a temporary name: it counts the elements, then renames. Each command is a
// batch of its own, and the pipe holds RENAME back until the count is answered.
func (p *Pipe) Conclude(e *PieceEnding) error {
	for _, x := range []struct {
		data []byte
		part part
	}{{e.count(e.Name), counted}, {resp.AppendCommand(nil, []byte("RENAME"), e.Name, e.Key), last}} {
		if err := p.Flush(); err != nil {
			return err
		}
		p.current = &batch{data: x.data, pieces: []Piece{{len(x.data), 1, x.part, e.Name, e}}}
	}
	return p.Flush()
}

// close waits until all pieces are acknowledged, and ends the pipe.
func (p *Pipe) close() error {
	err := p.Flush()
	p.mu.Lock()
	p.closing = true
	p.changed.Broadcast()
	p.mu.Unlock()
	<-p.done
	if p.err != nil {
		return p.err
	}
	return err
}

// drained waits until all added pieces are acknowledged.
func (p *Pipe) drained() error {
	if err := p.Flush(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && len(p.queue) > 0 {
		p.changed.Wait()
	}
	return p.err
}

// busy reports whether pieces are unacknowledged.
func (p *Pipe) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && len(p.queue) > 0
}

// awaits reports whether a reply is due.
func (p *Pipe) awaits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && p.written > 0
}

// fail ends the pipe.
func (p *Pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.end(err)
}

// end ends the pipe; p.mu is held.
func (p *Pipe) end(err error) error {
	if p.err == nil {
		p.err = err
	}
	p.changed.Broadcast()
	return p.err
}

// progress returns the number of acknowledged pieces.
func (p *Pipe) progress() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// answerPiece removes the first piece of the queue.
func (p *Pipe) answerPiece() {
	b := p.queue[0]
	p.total++
	p.passed = false
	if p.answered++; p.answered < len(b.pieces) {
		return
	}
	p.careful = max(p.careful-1, 0)
	p.bytes -= int64(len(b.data))
	p.queue = p.queue[1:]
	if p.written > 0 {
		p.written--
	}
	p.answered = 0
	if b != p.writing && cap(b.data) <= 4*batchSize && len(p.free) < 2*maxUnderWay/batchSize {
		*b = batch{data: b.data[:0], pieces: b.pieces[:0]}
		p.free = append(p.free, b)
	}
	p.changed.Broadcast()
}

// temporary lists the temporary names in the unacknowledged pieces of an ended pipe.
func (p *Pipe) temporary() (names []string) {
	for i, b := range append(p.queue, p.current) {
		from := 0
		if i == 0 {
			from = p.answered
		}
		for _, x := range b.pieces[min(from, len(b.pieces)):] {
			if x.Name != nil {
				names = append(names, string(x.Name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
