package master

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvferry/convert"
	"kvferry/serve/resp"
)

// stall is the time limit for a write to a replica: the repl-timeout of Redis.
const stall = 60 * time.Second

// Commands that a master sends. A replica counts their bytes.
const (
	pingCommand   = "*1\r\n$4\r\nPING\r\n"
	getAckCommand = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"
)

// link is the connection of a replica after PSYNC or SYNC:
//
//	< +FULLRESYNC id 0            after PSYNC
//	< newlines                    while the first pass counts
//	< $length or $EOF:mark        by what the replica can read
//	< an RDB file, the mark
//	> newlines                    while it loads
//	> REPLCONF ACK 0              at the end of a file with a mark: only then it reads on
//	< PING, REPLCONF GETACK *     each 10 s
//	> REPLCONF ACK offset         each second, and as a reply
type link struct {
	m    *Master
	r    *Replica
	conn net.Conn

	mu     sync.Mutex // of writing
	state  atomic.Value
	offset atomic.Int64  // of the bytes sent after the file
	acked  atomic.Int64  // acknowledged offset; -1: none
	acks   chan struct{} // signals a new acked
}

// Feed feeds a replica until the link or ctx ends. rest are the bytes that were received after the command.
func (m *Master) Feed(ctx context.Context, conn net.Conn, rest []byte, r *Replica, psync bool) error {
	l := &link{m: m, r: r, conn: conn, acks: make(chan struct{}, 1)}
	l.acked.Store(-1)
	l.state.Store("wait_bgsave")
	m.began(l)
	defer m.ended(l)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.ctx, func() { cancel(context.Cause(m.ctx)) })()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends reading and writing
	var reading sync.WaitGroup
	defer reading.Wait()
	defer func() { _ = conn.Close() }()
	reading.Add(1)
	go func() {
		defer reading.Done()
		cancel(l.receive(io.MultiReader(bytes.NewReader(bytes.Clone(rest)), conn)))
	}()
	err := l.feed(ctx, psync)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		err = errClosed
	}
	if err = l.told(err); err != nil {
		return fmt.Errorf("replica %s: %w", r.address(), err)
	}
	return nil
}

// errClosed means that a replica closed its connection.
var errClosed = errors.New("it closed the connection")

// told logs the end of a link and returns the error of one that ended too early.
func (l *link) told(err error) error {
	switch state := l.state.Load(); {
	case state == "online" && (err == nil || errors.Is(err, errClosed)):
		l.m.log("replica %s is gone", l.r.address())
		return nil
	case state == "sent" && (err == nil || errors.Is(err, errClosed)): // redis-cli --rdb, or a server that loads for itself
		l.m.log("%s took the file and closed the connection", l.r.address())
		return nil
	case errors.Is(err, errClosed):
		return fmt.Errorf("%w before it had everything", err)
	}
	return err
}

// feed sends everything.
func (l *link) feed(ctx context.Context, psync bool) error {
	l.m.log("replica %s asks for everything", l.r.address())
	if psync {
		if err := l.send("+FULLRESYNC " + l.m.id + " 0\r\n"); err != nil {
			return err
		}
	}
	f, err := l.prepared(ctx)
	if loss := (*convert.LossError)(nil); errors.As(err, &loss) && !l.m.once(l.r) {
		l.m.log("replica %s waits for a dataset that it does not get: end kvferry, and start it with the flags that the error names", l.r.address())
		return l.m.alive(ctx, nil, l.newline)
	}
	if err != nil {
		return errors.Join(err, l.send("-"+errorText(err)+"\r\n"))
	}
	l.state.Store("send_bulk")
	if err := l.sendFile(ctx, f); err != nil {
		return err
	}
	l.state.Store("sent")
	if l.r.once {
		return nil
	}
	return l.keepUp(ctx)
}

// errorText is an error reply of one line.
func errorText(err error) string {
	return "ERR " + strings.NewReplacer("\r", " ", "\n", " ").Replace(err.Error())
}

// prepared waits until the file is measured. It sends newlines until then, to keep the link alive.
func (l *link) prepared(ctx context.Context) (*file, error) {
	f := l.m.file(l.r.kind(l.m.Version))
	if err := l.m.alive(ctx, f.done, l.newline); err != nil {
		return nil, err
	}
	return f, f.err
}

func (l *link) newline() error { return l.send("\n") }

// sendFile sends the RDB file.
func (l *link) sendFile(ctx context.Context, f *file) error {
	mark := ""
	head := strconv.FormatInt(f.measured.Size(), 10)
	if l.r.eof {
		var b [20]byte
		_, _ = rand.Read(b[:]) // does not fail
		mark = hex.EncodeToString(b[:])
		head = "EOF:" + mark
	}
	if l.r.only != all { // such passes do not show how the source must be opened, and wait for those that do
		l.m.first.Lock()
		defer l.m.first.Unlock()
	}
	err := l.m.pass(ctx, l.newline, func(o *convert.Feeder) error {
		if err := l.send("$" + head + "\r\n"); err != nil {
			return err
		}
		s := f.measured.Stream(&sender{ctx, l})
		done := make(chan struct{})
		var err error
		go func() {
			defer close(done)
			_, err = o.Pass(ctx, s.Format(), 1, l.r.only != all)
		}()
		fill := quiet
		if l.r.eof {
			fill = s.Fill
		}
		filled := l.m.alive(ctx, done, fill)
		<-done // the pass uses the link
		return errors.Join(err, filled)
	})
	if err == nil && mark != "" {
		err = l.send(mark)
	}
	return err
}

// sender sends the bytes of a file.
type sender struct {
	ctx context.Context
	l   *link
}

func (s *sender) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		n := min(len(b)-done, 64<<10)
		if err := s.l.m.Limit.Wait(s.ctx, n); err != nil {
			return done, err
		}
		if err := s.l.write(b[done : done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return len(b), nil
}

// send sends a line or a command.
func (l *link) send(text string) error { return l.write([]byte(text)) }

func (l *link) write(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return err
	}
	_, err := l.conn.Write(b)
	return err
}

// keepUp sends PINGs after the file. The replica is in sync when it acknowledges the first.
func (l *link) keepUp(ctx context.Context) error {
	if l.r.eof { // it may still look for the mark
		if err := l.acknowledged(ctx, 0); err != nil {
			return err
		}
	}
	tick := time.NewTicker(l.m.every)
	defer tick.Stop()
	for {
		l.offset.Add(int64(len(pingCommand)))
		wanted := l.offset.Load()
		l.offset.Add(int64(len(getAckCommand)))
		if err := l.send(pingCommand + getAckCommand); err != nil {
			return err
		}
		if l.state.Load() != "online" {
			if err := l.acknowledged(ctx, wanted); err != nil {
				return err
			}
			l.state.Store("online")
			l.m.log("replica %s is in sync (offset %d): on it, run REPLICAOF NO ONE", l.r.address(), l.acked.Load())
			l.m.inSync(l.r.address())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// acknowledged waits until the replica has acknowledged an offset.
func (l *link) acknowledged(ctx context.Context, offset int64) error {
	for l.acked.Load() < offset {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.acks:
		}
	}
	return nil
}

// receive reads acknowledgements until the connection ends.
func (l *link) receive(in io.Reader) error {
	r := resp.NewReader(in)
	defer r.Close()
	for {
		args, err := r.Next()
		if err != nil {
			return err
		}
		if len(args) < 3 || !strings.EqualFold(string(args[0]), "REPLCONF") || !strings.EqualFold(string(args[1]), "ACK") {
			continue
		}
		if n, err := strconv.ParseInt(string(args[2]), 10, 64); err == nil && n > l.acked.Load() {
			l.acked.Store(n)
			select {
			case l.acks <- struct{}{}:
			default:
			}
		}
	}
}
