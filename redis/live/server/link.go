package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// firstAnswer limits the wait for the first reply.
	firstAnswer = 15 * time.Second
	// silence limits the wait for a reply: a slow command of another client may block the server.
	silence = 5 * time.Minute
	// Unfed limits the silence of a master towards a replica. A master sends an empty line every second until its
	// snapshot starts; replicas give up after the same time (repl-timeout).
	Unfed = time.Minute
	// noticed is the silence after which the user is notified.
	noticed = 15 * time.Second
)

// SilenceError reports a server that sent no data for the given time.
type SilenceError struct{ time.Duration }

func (e SilenceError) Error() string {
	return fmt.Sprintf("the connection is open, but the server sent no data for %s: it is stopped, cut off or busy; check its state and start again",
		e.Duration)
}

// Link is a connection to a server.
type Link struct {
	net.Conn
	Patience time.Duration             // timeout of each read or write
	until    time.Time                 // read deadline that replaces patience; zero: unset
	notice   func(after time.Duration) // called once if a read has waited for noticed; may be nil
	noticed  time.Duration
	Awaits   func() bool // reports whether an answer is due; nil: always
	guard    *guard      // nil: the reader of the answers bounds them
}

// dial connects to a server.
func (o *Options) dial(ctx context.Context, host string) (*Link, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, o.network, host)
	if err != nil {
		return nil, err
	}
	if o.tlsConfig != nil {
		t := tls.Client(conn, o.tlsConfig)
		if err := t.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = t
	}
	l := &Link{Conn: conn, Patience: silence, noticed: noticed}
	if o.Notice != nil {
		l.notice = func(after time.Duration) {
			now := time.Now()
			if until := o.hush.Load(); now.UnixNano() < until || !o.hush.CompareAndSwap(until, now.Add(noticed).UnixNano()) {
				return
			}
			o.Notice(fmt.Sprintf("%s: no data from %s for %s; still waiting", o.Shown, host, after))
		}
	}
	return l, nil
}

// open connects to a server, logs in and calls check, which may be nil, for further commands.
func (o *Options) open(ctx context.Context, host, db string, check func(redis.Conn) error) (*Link, error) {
	l, err := o.dial(ctx, host)
	if err != nil {
		return nil, err
	}
	l.guard = newGuard(o.bound())
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	err = l.SetDeadline(time.Now().Add(firstAnswer))
	if err == nil {
		err = o.greet(redis.NewConn(l, 0, 0), db, check)
	}
	if err == nil {
		err = l.SetDeadline(time.Time{})
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// greet authenticates, selects the database and calls check. A refusal is final, unless the server is busy.
func (o *Options) greet(conn redis.Conn, db string, check func(redis.Conn) error) (err error) {
	switch {
	case o.Password == "":
	case o.user == "":
		_, err = conn.Do("AUTH", o.Password)
	default:
		_, err = conn.Do("AUTH", o.user, o.Password)
	}
	if err == nil && db != "0" {
		_, err = conn.Do("SELECT", db)
	}
	if err == nil && check != nil {
		err = check(conn)
	}
	var refused redis.Error
	if errors.As(err, &refused) && !IsBusy(err) {
		err = FinalError{err}
	}
	return Parsed(err)
}

// SetDeadline replaces the link's own patience until it is set to the zero time.
func (l *Link) SetDeadline(t time.Time) error {
	l.until = t
	return l.Conn.SetWriteDeadline(t)
}

// SetReadDeadline does nothing: redigo calls it before each reply, without a deadline.
func (*Link) SetReadDeadline(time.Time) error { return nil }

// Read reads from the server and checks the bytes with the guard.
func (l *Link) Read(p []byte) (int, error) {
	n, err := l.wait(p)
	if n > 0 && l.guard != nil {
		if err := l.guard.checkBytes(p[:n]); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (l *Link) wait(p []byte) (int, error) {
	end := l.until
	if end.IsZero() {
		end = time.Now().Add(l.Patience)
	}
	for told := l.notice == nil; ; told = true {
		now := end
		if next := time.Now().Add(l.noticed); !told && next.Before(end) {
			now = next
		}
		if err := l.Conn.SetReadDeadline(now); err != nil {
			return 0, err
		}
		n, err := l.Conn.Read(p)
		switch {
		case n > 0 || !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case now.Equal(end) && l.until.IsZero():
			return 0, SilenceError{l.Patience}
		case now.Equal(end):
			return 0, err
		}
		if l.Awaits == nil || l.Awaits() {
			l.notice(l.noticed)
		}
	}
}

// Write sends bytes.
func (l *Link) Write(p []byte) (int, error) {
	if l.until.IsZero() {
		if err := l.Conn.SetWriteDeadline(time.Now().Add(l.Patience)); err != nil {
			return 0, err
		}
	}
	return l.Conn.Write(p)
}
