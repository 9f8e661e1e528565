package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/format"
	"kvferry/internal/sys/pace"
	"kvferry/internal/text/resp"
)

// run opens connections while the queue has batches.
func (p *Pipe) run() {
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
		further, broken := p.use(conn)
		if further {
			inVain, since = 0, time.Now()
		}
		var busy *BusyError
		switch {
		case errors.As(broken, &busy):
			inVain--
			if time.Since(since) > Patience {
				p.fail(&format.LostError{Err: busy})
			} else if err := pace.Rest(p.ctx, PauseAfter); err != nil {
				p.fail(err)
			}
		case inVain >= maxInVain:
			p.fail(&format.LostError{Err: errInVain})
		}
	}
}

// use sends over a connection, and reports whether that got any further and why the connection broke.
func (p *Pipe) use(conn net.Conn) (further bool, broken error) {
	before := p.progress()
	p.session(conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	further = p.total > before || p.err != nil || len(p.queue) == 0 // servers close idle connections
	if !further {
		p.careful = slowBatches
	}
	return further, p.broken
}

// maxInVain limits the consecutive connections that break before any reply.
const maxInVain = 20

var errInVain = errors.New("the connection keeps breaking before the server answers: look for a proxy or a limit on the size of requests in between")

// slowBatches is the number of batches sent one at a time after a connection broke before any reply, so that replies
// arrive before the next one breaks.
const slowBatches = 32

// wait waits for a batch to send; false if the pipe has ended.
func (p *Pipe) wait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && len(p.queue) == 0 && !p.closing {
		p.changed.Wait()
	}
	return p.err == nil && len(p.queue) > 0
}

// connect dials until patience runs out.
func (p *Pipe) connect() (net.Conn, error) {
	until := time.Now().Add(Patience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		conn, err := p.dial(p.ctx)
		if err == nil {
			return conn, nil
		}
		var final FinalError
		switch {
		case errors.As(err, &final):
			return nil, err
		case p.replaced != nil && p.replaced(p.ctx):
			return nil, errReplaced
		case time.Now().After(until):
			return nil, &format.LostError{Err: fmt.Errorf("gave up after %s: %w", Patience, err)}
		}
		if err := pace.Rest(p.ctx, pause); err != nil {
			return nil, err
		}
	}
}

// errReplaced means that the server lost its slots, so the pipe has no destination.
var errReplaced = errors.New("the server was replaced")

// handOver reroutes all unacknowledged pieces to the servers that took over.
func (p *Pipe) handOver() error {
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

// session sends over one connection until it breaks or the pipe ends.
func (p *Pipe) session(conn net.Conn) {
	if l, ok := conn.(*Link); ok {
		l.Awaits = p.awaits
	}
	stop := context.AfterFunc(p.ctx, func() { conn.Close() })
	defer stop()
	replies := redis.NewConn(conn, 0, 0)
	if err := p.resume(replies); err != nil {
		conn.Close()
		p.breaks(err)
		var final FinalError
		if errors.As(err, &final) {
			p.fail(err)
		}
		return
	}
	p.mu.Lock()
	p.written, p.left, p.passed = 0, 0, false
	p.mu.Unlock()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		p.read(replies)
	}()
	p.send(conn)
	conn.Close()
	<-reading
}

// resume handles a RENAME that was unanswered when the connection broke. If the temporary name no longer exists, RENAME
// probably succeeded, so resume checks the key. All other pieces can be resent.
func (p *Pipe) resume(conn redis.Conn) error {
	p.mu.Lock()
	p.broken = nil
	x := p.queue[0].pieces[p.answered]
	p.mu.Unlock() // the server may take long
	if x.part != last {
		return nil
	}
	e := x.ending
	if there, err := ask(conn, "EXISTS", e.Name); err != nil || there == int64(1) {
		return err
	}
	found, err := ask(conn, e.Size, e.Key)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Holds(found):
	case e.Lapses:
		p.lapsed(e.Key)
	default:
		return FinalError{Err: e.altered(0)}
	}
	p.answerPiece()
	return nil
}

// ask sends a command and returns the reply, nil for a key of another type.
func ask(conn redis.Conn, command string, key []byte) (any, error) {
	reply, err := conn.Do(command, key)
	var refused redis.Error
	switch {
	case IsBusy(err):
		return nil, &BusyError{Text: err.Error()}
	case errors.As(err, &refused) && strings.HasPrefix(string(refused), "WRONGTYPE"):
		return nil, nil
	case errors.As(err, &refused):
		return nil, FinalError{Err: fmt.Errorf("%s was being written, and its state is unknown: error from the server: %w", key,
			refused)}
	}
	return reply, Parsed(err)
}

// send writes batches until the connection breaks or the pipe ends.
func (p *Pipe) send(conn net.Conn) {
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
func (p *Pipe) next() (*batch, int) {
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
func (p *Pipe) breaks(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		p.broken = err
	}
	p.changed.Broadcast()
}

// read reads replies until the connection ends.
func (p *Pipe) read(conn redis.Conn) {
	for {
		reply, err := conn.Receive()
		if _, refused := err.(redis.Error); refused || err == nil {
			err = p.answer(reply, err)
		}
		if err = Parsed(err); err != nil {
			p.breaks(err)
			var silent SilenceError
			if errors.Is(err, ErrAnswer) || errors.As(err, &silent) && p.awaits() {
				p.fail(&format.LostError{Err: err})
			}
			return
		}
	}
}

// answer handles one reply, or the server's refusal.
func (p *Pipe) answer(reply any, refusal error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 || p.written == 0 {
		return errors.New("an answer to no request")
	}
	b := p.queue[0]
	x := b.pieces[p.answered]
	if p.left == 0 {
		p.left = x.Commands
	}
	if refusal != nil {
		if err := p.refused(b, x, refusal); err != nil {
			return err
		}
	} else if x.part == counted && p.left == 1 && !p.passed && !x.ending.Holds(reply) {
		return p.end(x.ending.altered(reply))
	}
	if p.left--; p.left == 0 {
		p.answerPiece()
	}
	return nil
}

// refused handles an error reply; nil means that the pipe goes on.
func (p *Pipe) refused(b *batch, x Piece, refusal error) error {
	if IsBusy(refusal) {
		return &BusyError{Text: refusal.Error()}
	}
	text := refusal.Error()
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "MOVED", "ASK":
		if p.elsewhere != nil {
			if p.passed {
				return nil
			}
			p.passed = true // the whole piece: its commands can run again, and their effects here moved with the slot
			data := b.piece(p.answered)
			p.mu.Unlock() // the other pipe may be redirected here
			defer p.mu.Lock()
			return p.elsewhere(data, x, refusal)
		}
	case "BUSYGROUP":
		return nil // a resent XGROUP CREATE
	}
	if x.part == last && strings.HasPrefix(text, "ERR no such key") {
		if x.ending.Lapses {
			p.lapsed(x.ending.Key)
			return nil
		}
		return p.end(x.ending.altered(0))
	}
	if strings.Contains(text, "equal or smaller than the target stream") && x.Name != nil {
		return nil // a resent XADD
	}
	return p.end(&refusedError{what: x.subject(b.piece(p.answered)), text: text})
}

// lapsed deletes the key that an expired record would have replaced: RENAME did not find the temporary name.
func (p *Pipe) lapsed(key []byte) {
	data := resp.AppendCommand(nil, "DEL", string(key))
	p.enqueue(&batch{data: data, pieces: []Piece{{end: len(data), Commands: 1}}})
}

// refusedError is a server's refusal of a record.
type refusedError struct{ what, text string }

func (e *refusedError) Error() string { return fmt.Sprintf("%s: the server says %s", e.what, e.text) }
