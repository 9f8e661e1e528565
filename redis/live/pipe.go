package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"kvferry/format"
	"kvferry/internal/sys/bufpool"
	"kvferry/internal/sys/pace"
)

const (
	// batchSize is the approximate size of a write.
	batchSize = 64 << 10
	// maxUnderWay limits the unacknowledged bytes of a connection; a single piece may exceed it.
	maxUnderWay = 4 << 20
	// patience is how long to wait for an unavailable server.
	patience = 60 * time.Second
)

// part is the role of a piece within its record.
type part uint8

const (
	adding  part = iota // a whole record, or elements under a temporary name; can be resent
	counted             // counts the elements of the temporary name
	last                // renames it; sent only after a correct count
)

// piece is a group of commands that is acknowledged as a whole.
type piece struct {
	end      int // offset in the batch
	commands int
	part     part
	name     []byte  // temporary name, unless the piece is a whole record
	ending   *ending // for counted and last
}

// batch is the unit of writing.
type batch struct {
	data   []byte
	pieces []piece
}

// pipe sends pieces to a server without waiting for replies. Only pass may be called from other goroutines.
type pipe struct {
	ctx  context.Context
	dial func(context.Context) (net.Conn, error)
	// elsewhere handles a MOVED or ASK reply to a piece; nil outside a cluster.
	elsewhere func(data []byte, p piece, answer string) error
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

// run opens connections while the queue has batches.
func (p *pipe) run() {
	since := time.Now() // time of the last progress
	for inVain := 0; p.wait(); inVain++ {
		conn, err := p.connect()
		if errors.Is(err, errReplaced) {
			err = p.handOver()
			inVain--
			if err == nil {
				continue
			}
		}
		if err != nil {
			p.fail(err)
			return
		}
		before := p.progress()
		p.session(conn)
		if p.progress() > before || !p.busy() { // servers close idle connections
			inVain, since = 0, time.Now()
		} else {
			p.slowDown()
		}
		var busy *busyError
		switch {
		case errors.As(p.why(), &busy):
			inVain--
			if time.Since(since) > patience {
				p.fail(&format.LostError{Err: busy})
			} else if err := pace.Rest(p.ctx, pauseAfter); err != nil {
				p.fail(err)
			}
		case inVain >= maxInVain:
			p.fail(&format.LostError{Err: errInVain})
		}
	}
}

// why returns the error of the last connection.
func (p *pipe) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// maxInVain limits the consecutive connections that break before any reply.
const maxInVain = 20

var errInVain = errors.New("the connection keeps breaking before the server answers: look for a proxy or a limit on the size of requests in between")

// slowBatches is the number of batches sent one at a time after a connection broke before any reply.
const slowBatches = 32

// slowDown sends the next batches one at a time, so that replies arrive before the connection breaks again.
func (p *pipe) slowDown() {
	p.mu.Lock()
	p.careful = slowBatches
	p.mu.Unlock()
}

// progress returns the number of acknowledged pieces.
func (p *pipe) progress() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// wait waits for a batch to send; false if the pipe has ended.
func (p *pipe) wait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && len(p.queue) == 0 && !p.closing {
		p.changed.Wait()
	}
	return p.err == nil && len(p.queue) > 0
}

// finalError is an error that a retry cannot fix.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// connect dials until patience runs out.
func (p *pipe) connect() (net.Conn, error) {
	until := time.Now().Add(patience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		conn, err := p.dial(p.ctx)
		if err == nil {
			return conn, nil
		}
		var final finalError
		switch {
		case errors.As(err, &final) || p.failed():
			return nil, err
		case p.replaced != nil && p.replaced(p.ctx):
			return nil, errReplaced
		case time.Now().After(until):
			return nil, &format.LostError{Err: fmt.Errorf("gave up after %s: %w", patience, err)}
		}
		select {
		case <-p.ctx.Done():
			return nil, context.Cause(p.ctx)
		case <-time.After(pause):
		}
	}
}

// errReplaced means that the server lost its slots, so the pipe has no destination.
var errReplaced = errors.New("the server was replaced")

// handOver reroutes all unacknowledged pieces to the servers that took over.
func (p *pipe) handOver() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 {
		b := p.queue[0]
		if err := p.reroute(p, b.piece(p.answered), b.pieces[p.answered]); err != nil {
			return err
		}
		p.answerPiece()
	}
	return nil
}

func (p *pipe) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

// session sends over one connection until it breaks or the pipe ends.
func (p *pipe) session(conn net.Conn) {
	if l, ok := conn.(*link); ok {
		l.awaits = p.awaits
	}
	stop := context.AfterFunc(p.ctx, func() { conn.Close() })
	defer stop()
	in := bufio.NewReaderSize(conn, 64<<10)
	if err := p.resume(conn, in); err != nil {
		conn.Close()
		p.breaks(err)
		var final finalError
		if errors.As(err, &final) {
			p.fail(err)
		}
		return
	}
	p.mu.Lock()
	p.broken, p.written, p.left, p.passed = nil, 0, 0, false
	p.mu.Unlock()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		p.read(in)
	}()
	p.send(conn)
	conn.Close()
	<-reading
}

// resume handles a RENAME that was unanswered when the connection broke. If the temporary name no longer exists, RENAME
// probably succeeded, so resume checks the key. All other pieces can be resent.
func (p *pipe) resume(conn net.Conn, in *bufio.Reader) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.queue[0].pieces[p.answered]
	if x.part != last {
		return nil
	}
	e := x.ending
	if there, err := ask(conn, in, appendCommand(nil, []byte("EXISTS"), e.name)); err != nil || there == ":1" {
		return err
	}
	found, err := ask(conn, in, e.count(e.key))
	switch {
	case err != nil:
		return err
	case e.holds(found):
	case e.lapses:
		p.lapsed(e.key)
	default:
		return finalError{e.altered(":0")}
	}
	p.answerPiece()
	return nil
}

// ask sends a command with an integer reply.
func ask(conn net.Conn, in *bufio.Reader, command []byte) (string, error) {
	if _, err := conn.Write(command); err != nil {
		return "", err
	}
	answer, err := readAnswer(in)
	switch {
	case err == nil && isBusy(answer):
		return "", &busyError{answer[1:]}
	case err == nil && strings.HasPrefix(answer, "-") && !strings.HasPrefix(answer, "-WRONGTYPE"):
		return "", finalError{fmt.Errorf("%s was being written and may or may not be there: the server says %s", argument(command, 1), answer[1:])}
	}
	return answer, err
}

// send writes batches until the connection breaks or the pipe ends.
func (p *pipe) send(conn net.Conn) {
	for {
		b, from := p.next()
		if b == nil {
			return
		}
		if _, err := conn.Write(b.data[from:]); err != nil {
			p.breaks(err)
			return
		}
	}
}

// next waits for a batch to write, and returns it with the offset to write from.
func (p *pipe) next() (*batch, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = nil
	for {
		switch {
		case p.err != nil || p.broken != nil:
			return nil, 0
		case p.written > 0 && (p.careful > 0 || p.written < len(p.queue) && p.queue[p.written].pieces[0].part == last):
			// wait for replies
		case p.written < len(p.queue):
			b := p.queue[p.written]
			from := 0
			if p.written == 0 && p.answered > 0 {
				from = b.pieces[p.answered-1].end
			}
			p.written++
			p.writing = b
			return b, from
		case p.closing && len(p.queue) == 0:
			return nil, 0
		}
		p.changed.Wait()
	}
}

// breaks marks the connection as broken.
func (p *pipe) breaks(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		p.broken = err
	}
	p.changed.Broadcast()
}

// read reads replies until the connection ends.
func (p *pipe) read(in *bufio.Reader) {
	for {
		answer, err := readAnswer(in)
		if err == nil {
			err = p.answer(answer)
		}
		if err != nil {
			p.breaks(err)
			var silent silenceError
			if errors.Is(err, errAnswer) || errors.As(err, &silent) && p.awaits() {
				p.fail(&format.LostError{Err: err})
			}
			return
		}
	}
}

// answer handles one reply.
func (p *pipe) answer(text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 || p.written == 0 {
		return errors.New("an answer to no request")
	}
	b := p.queue[0]
	x := b.pieces[p.answered]
	if p.left == 0 {
		p.left = x.commands
	}
	if strings.HasPrefix(text, "-") {
		if err := p.refused(b, x, text[1:]); err != nil {
			return err
		}
	} else if x.part == counted && p.left == 1 && !p.passed && !x.ending.holds(text) {
		return p.end(x.ending.altered(text))
	}
	if p.left--; p.left == 0 {
		p.answerPiece()
	}
	return nil
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

// piece returns the bytes of a piece.
func (b *batch) piece(i int) []byte {
	from := 0
	if i > 0 {
		from = b.pieces[i-1].end
	}
	return b.data[from:b.pieces[i].end]
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
