package live

import (
	"context"
	"net"
	"slices"
	"sync"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/resp"
)

const (
	// batchSize is the approximate size of a write.
	batchSize = 64 << 10
	// maxUnderWay limits the unacknowledged bytes of a connection; a single piece may exceed it.
	maxUnderWay = 4 << 20
)

// pipe sends pieces to a server without waiting for replies. Only pass may be called from other goroutines.
type pipe struct {
	ctx  context.Context
	dial func(context.Context) (net.Conn, error)
	// elsewhere handles a MOVED or ASK reply to a piece; nil outside a cluster.
	elsewhere func(data []byte, p piece, answer error) error
	// replaced reports whether an unreachable server lost its slots to another one; reroute sends a piece to the new
	// owner. Both are nil outside a cluster.
	replaced func(context.Context) bool
	reroute  func(from *pipe, data []byte, p piece) error

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
func newPipe(ctx context.Context, dial func(context.Context) (net.Conn, error)) *pipe {
	p := &pipe{ctx: ctx, dial: dial, done: make(chan struct{}), current: new(batch)}
	p.changed.L = &p.mu
	stop := context.AfterFunc(ctx, func() { p.fail(context.Cause(ctx)) })
	go func() {
		defer close(p.done)
		defer stop()
		p.run()
	}()
	return p
}

// add queues a piece. It blocks while too many bytes are unacknowledged. The pipe takes ownership of data longer than
// bufpool.Large.
func (p *pipe) add(data []byte, x piece) error {
	if x.commands == 0 {
		return nil
	}
	if len(data) > bufpool.Large {
		if err := p.flush(); err != nil {
			return err
		}
		x.end = len(data)
		p.current = &batch{data: data, pieces: []piece{x}}
		return p.flush()
	}
	b := p.current
	b.data = append(b.data, data...)
	x.end = len(b.data)
	b.pieces = append(b.pieces, x)
	if len(b.data) < batchSize {
		return nil
	}
	return p.flush()
}

// flush queues the current batch.
func (p *pipe) flush() error {
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
func (p *pipe) pass(data []byte, x piece) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.end = len(data)
	p.enqueue(&batch{data: append([]byte(nil), data...), pieces: []piece{x}})
}

func (p *pipe) enqueue(b *batch) {
	p.queue = append(p.queue, b)
	p.bytes += int64(len(b.data))
	p.changed.Broadcast()
}

func (p *pipe) empty() *batch {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return new(batch)
}

// conclude ends a record that was sent under a temporary name: it counts the elements, then renames. Each command is a
// batch of its own, and the pipe holds RENAME back until the count is answered.
func (p *pipe) conclude(e *ending) error {
	for _, x := range []struct {
		data []byte
		part part
	}{{e.count(e.name), counted}, {resp.AppendCommand(nil, []byte("RENAME"), e.name, e.key), last}} {
		if err := p.flush(); err != nil {
			return err
		}
		p.current = &batch{data: x.data, pieces: []piece{{len(x.data), 1, x.part, e.name, e}}}
	}
	return p.flush()
}

// close waits until all pieces are acknowledged, and ends the pipe.
func (p *pipe) close() error {
	err := p.flush()
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
func (p *pipe) drained() error {
	if err := p.flush(); err != nil {
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
func (p *pipe) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && len(p.queue) > 0
}

// awaits reports whether a reply is due.
func (p *pipe) awaits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && p.written > 0
}

// fail ends the pipe.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.end(err)
}

// end ends the pipe; p.mu is held.
func (p *pipe) end(err error) error {
	if p.err == nil {
		p.err = err
	}
	p.changed.Broadcast()
	return p.err
}

// progress returns the number of acknowledged pieces.
func (p *pipe) progress() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// answerPiece removes the first piece of the queue.
func (p *pipe) answerPiece() {
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
func (p *pipe) temporary() (names []string) {
	for i, b := range append(p.queue, p.current) {
		from := 0
		if i == 0 {
			from = p.answered
		}
		for _, x := range b.pieces[min(from, len(b.pieces)):] {
			if x.name != nil {
				names = append(names, string(x.name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
