package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/pace"
)

// maxPause bounds the pause between tries.
const maxPause = 10 * time.Second

// firstTries bounds the tries for a first answer: a name or port that is wrong does not heal.
const firstTries = 3

// errReplaced means that an object has another version than the one described.
var errReplaced = errors.New("it was replaced")

// errStalled means that a server was silent for Options.Idle.
var errStalled = errors.New("the server stopped sending")

// requests repeats requests to a server that fail for a passing reason.
type requests struct {
	ctx     context.Context
	o       Options
	server  server
	reached atomic.Bool // the server answered
}

// retry calls do until it succeeds, fails in a lasting way, or the tries are used up.
func (r *requests) retry(op, address string, do func() error) error {
	for i := 1; ; i++ {
		err := do()
		if err == nil {
			r.reached.Store(true)
			return nil
		}
		if err = r.again(i, err); err != nil {
			return r.explain(op, address, err)
		}
	}
}

// again returns nil after a pause if a request that failed for the i-th time should be repeated, else the error to
// report. Pauses differ by chance: readers that broke off together do not come back together.
func (r *requests) again(i int, err error) error {
	switch {
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case errors.Is(err, errReplaced), errors.Is(err, errTaken), errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist),
		!errors.Is(err, errStalled) && !r.server.passing(err):
		return err
	case i >= r.o.Tries, i >= firstTries && r.unreached(err):
		return fmt.Errorf("%w (%d tries)", err, i)
	}
	d := min(maxPause, r.o.Pause<<min(i-1, 10))
	return pace.Rest(r.ctx, d/2+rand.N(d/2+1))
}

// unreached reports whether a request failed without an answer, and none was ever answered.
func (r *requests) unreached(err error) bool {
	answered := errors.As(err, new(*s3Error)) || errors.As(err, new(statusError))
	return !answered && !r.reached.Load() && (r.server.passing(err) || errors.As(err, new(*net.DNSError)))
}

// explain names the object in an error.
func (r *requests) explain(op, address string, err error) error {
	switch {
	case r.ctx.Err() != nil && errors.Is(err, context.Cause(r.ctx)), errors.As(err, new(*ExistsError)): // it names the target
		return err
	case errors.Is(err, errReplaced):
		return &disk.ChangedError{Path: address, How: errReplaced.Error()}
	case op == "read" && errors.Is(err, fs.ErrNotExist):
		return &disk.ChangedError{Path: address, How: "it was removed"}
	case r.unreached(err):
		err = fmt.Errorf("no answer from %s: %w: check the address, and that this machine reaches it", r.server.host(), err)
	}
	return failed(op, address, err)
}

// body reads a range of an object, by as many requests as it takes.
type body struct {
	h        *handle
	off, end int64
	in       io.ReadCloser
	cancel   context.CancelCauseFunc
	watch    *time.Timer
	ctx      context.Context
	tries    int // in a row without a byte
}

// fill fills p with the next bytes.
func (b *body) fill(p []byte) error {
	f := b.h.f
	for len(p) > 0 {
		n, err := b.read(p)
		p, b.off = p[n:], b.off+int64(n)
		if n > 0 {
			b.tries = 0
		}
		if err == nil || len(p) == 0 {
			continue
		}
		b.close()
		b.tries++
		if err = f.again(b.tries, err); err != nil {
			return f.explain("read", b.h.info.Of, err)
		}
	}
	return nil
}

// read reads some bytes, after a new request if none is open. It ends the request if the server is silent.
func (b *body) read(p []byte) (n int, err error) {
	idle := b.h.f.o.Idle
	if b.in == nil {
		b.ctx, b.cancel = context.WithCancelCause(b.h.f.ctx)
		b.watch = time.AfterFunc(idle, func() { b.cancel(errStalled) })
		if b.in, err = b.h.f.server.get(b.ctx, b.h.o, b.off, b.end-b.off); err != nil {
			return 0, b.stalled(err)
		}
	}
	b.watch.Reset(idle)
	n, err = b.in.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // fill asks for bytes of the range only
	}
	return n, b.stalled(err)
}

// stalled replaces the error of a request that was ended because the server was silent.
func (b *body) stalled(err error) error {
	if err != nil && context.Cause(b.ctx) == errStalled {
		return errStalled
	}
	return err
}

// close ends the request.
func (b *body) close() {
	if b.cancel != nil {
		b.watch.Stop()
		b.cancel(nil)
		b.cancel = nil
	}
	if b.in != nil {
		b.in.Close()
		b.in = nil
	}
}
