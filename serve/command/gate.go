package command

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"kvferry/record"
)

const (
	// maxPasses is the number of passes over the dataset at a time.
	maxPasses = 64
	// quickPasses of them are for commands that look an element or a string up: they never wait for those that read whole
	// collections.
	quickPasses = 8
	// lookEvery is the time after which a command that reads looks whether its client is still there.
	lookEvery = 250 * time.Millisecond
	// largeRow is the size from which elements count against the memory.
	largeRow = 1 << 20
	// patience limits the time that a client may accept no bytes while others wait for its resources.
	patience = 5 * time.Second
)

// gate shares passes and memory among clients. A client that holds passes never waits for more: otherwise two clients could
// block each other. A client that stops reading while others wait is disconnected.
type gate struct {
	mu      sync.Mutex
	passes  int   // in use
	rows    int64 // bytes of large rows in use
	request int64 // bytes of large requests
	holders map[*Client]int
	waiting []chan struct{} // in the order of their coming
	reading chan struct{}   // one for each goroutine that reads rows, whose size is unknown before
	memory  int64
}

func newGate(memory int64) *gate {
	return &gate{holders: map[*Client]int{}, reading: make(chan struct{}, 2*runtime.GOMAXPROCS(0)), memory: max(memory/4, largeRow)}
}

// wait waits until take succeeds. What becomes free wakes one waiter, and a waiter that succeeds wakes the next.
func (g *gate) wait(ctx context.Context, take func() bool) error {
	woken := make(chan struct{}, 1)
	for {
		g.mu.Lock()
		if take() {
			g.wake()
			g.mu.Unlock()
			return nil
		}
		g.waiting = append(g.waiting, woken)
		g.mu.Unlock()
		timer := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
		case <-woken:
		case <-timer.C:
			g.evict()
		}
		timer.Stop()
		g.leave(woken)
		if ctx.Err() != nil {
			g.mu.Lock()
			g.wake() // in place of this waiter
			g.mu.Unlock()
			return context.Cause(ctx)
		}
	}
}

// wake wakes the first waiter.
func (g *gate) wake() {
	if len(g.waiting) > 0 {
		g.waiting[0] <- struct{}{}
		g.waiting = append(g.waiting[:0], g.waiting[1:]...)
	}
}

// leave removes a waiter.
func (g *gate) leave(woken chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(w chan struct{}) bool { return w == woken })
	select {
	case <-woken:
	default:
	}
}

// pass takes n passes for a client.
func (g *gate) pass(ctx context.Context, cl *Client, n int, quick bool) error {
	most := maxPasses
	if !quick {
		most -= quickPasses
	}
	return g.wait(ctx, func() bool {
		if g.passes+n > most {
			return false
		}
		g.passes += n
		g.holders[cl] += n
		return true
	})
}

// row takes memory for a large row; one that is larger than all of the memory waits until no other is held.
func (g *gate) row(ctx context.Context, n int64) error {
	return g.wait(ctx, func() bool {
		if g.rows > 0 && g.rows+n > g.memory {
			return false
		}
		g.rows += n
		return true
	})
}

// ErrRequests means that the requests of all clients together are too large.
var ErrRequests = errors.New("the large requests of all clients need more memory than --memory has for them")

// TakeRequest takes memory for a request; it never waits.
func (s *Server) TakeRequest(n int) error {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if s.gate.request+int64(n) > s.gate.memory/2 {
		return ErrRequests
	}
	s.gate.request += int64(n)
	return nil
}

// GiveRequest gives back the memory of a request.
func (s *Server) GiveRequest(n int) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.request -= int64(n)
}

// free gives back passes and memory.
func (g *gate) free(cl *Client, passes int, rows int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passes -= passes
	g.rows -= rows
	if g.holders[cl] -= passes; g.holders[cl] <= 0 {
		delete(g.holders, cl)
	}
	g.wake()
}

// Held returns the number of passes in use, and the bytes of large elements in memory.
func (s *Server) Held() (passes int, bytes int64) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.passes, s.gate.rows
}

// evict disconnects the client that has stalled the longest.
func (g *gate) evict() {
	g.mu.Lock()
	defer g.mu.Unlock()
	var worst *Client
	least := time.Now().Add(-patience).UnixNano()
	for cl := range g.holders {
		if since := cl.Stalled.Load(); since != 0 && since < least {
			worst, least = cl, since
		}
	}
	if worst != nil {
		worst.Kill()
	}
}

// errGone ends a command whose client has closed its connection.
var errGone = errors.New("the client has closed the connection")

// look returns an error if the client has gone. It looks now and then.
func (cl *Client) look() error {
	if cl.Gone == nil || time.Since(cl.looked) < lookEvery {
		return nil
	}
	gone := cl.Gone()
	if cl.looked = time.Now(); gone {
		return errGone
	}
	return nil
}

// gated is a value that a client reads under the gate.
type gated struct {
	Value
	gate   *gate
	ctx    context.Context
	client *Client
	passes int
	rows   int64 // bytes of the large elements read last
}

// Read returns the next elements.
func (v *gated) Read(dst []record.Element) (n int, err error) {
	v.drop()
	if err := v.client.look(); err != nil {
		return 0, err
	}
	select {
	case v.gate.reading <- struct{}{}:
	case <-v.ctx.Done():
		return 0, context.Cause(v.ctx)
	}
	defer func() { <-v.gate.reading }()
	if n, err = v.Value.Read(dst); err != nil {
		return n, err
	}
	if size := record.BatchBytes(dst[:n]); size >= largeRow {
		if err := v.gate.row(v.ctx, size); err != nil {
			return 0, err
		}
		v.rows = size
	}
	return n, nil
}

// drop gives back the memory of large elements.
func (v *gated) drop() {
	if v.rows > 0 {
		v.gate.free(v.client, 0, v.rows)
		v.rows = 0
	}
}

// Close ends the pass.
func (v *gated) Close() error {
	err := v.Value.Close()
	v.gate.free(v.client, v.passes, v.rows)
	return err
}

// handOver changes the owner of the pass, and what ends it.
func (v *gated) handOver(ctx context.Context, to *Client) {
	v.gate.handOver(v.client, to)
	v.ctx, v.client = ctx, to
}

// gatedScanner is a pass over keys that a client reads.
type gatedScanner struct {
	Scanner
	s  *Server
	cl *Client
}

// Next returns the next key.
func (s *gatedScanner) Next() (*record.Header, error) {
	if err := s.cl.look(); err != nil {
		return nil, err
	}
	return s.Scanner.Next()
}

// Close ends the pass.
func (s *gatedScanner) Close() error {
	err := s.Scanner.Close()
	s.s.gate.free(s.cl, 1, 0)
	return err
}

// handOver changes the owner of a pass.
func (s *gatedScanner) handOver(_ context.Context, to *Client) {
	s.s.gate.handOver(s.cl, to)
	s.cl = to
}

// handOver changes the owner of a pass.
func (g *gate) handOver(from, to *Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holders[from]--; g.holders[from] <= 0 {
		delete(g.holders, from)
	}
	g.holders[to]++
}

// nobody owns parked passes.
var nobody = &Client{Kill: func() {}}

// ScanFrom opens a pass over the keys after a position.
func (c *Call) ScanFrom(ctx context.Context, after *Position) (*gatedScanner, error) {
	if err := c.Server.gate.pass(c.Ctx, c.Client, 1, false); err != nil {
		return nil, err
	}
	s, err := c.Server.Keys.Scan(ctx, c.Client.DB, after)
	if err != nil {
		c.Server.gate.free(c.Client, 1, 0)
		return nil, err
	}
	return &gatedScanner{s, c.Server, c.Client}, nil
}

// openGated opens the value of a key; the caller holds a pass for it, which Close gives back.
func (c *Call) openGated(key []byte, how Reading) (Value, error) {
	g, ctx := c.Server.gate, c.Ctx
	if how.lasting {
		ctx = c.Server.ctx()
	}
	select {
	case g.reading <- struct{}{}:
	case <-c.Ctx.Done():
		g.free(c.Client, 1, 0)
		return nil, context.Cause(c.Ctx)
	}
	v, err := c.Server.Keys.Open(ctx, c.Client.DB, key, how)
	<-g.reading
	if v == nil || err != nil {
		g.free(c.Client, 1, 0)
		return nil, err
	}
	return &gated{Value: v, gate: g, ctx: c.Ctx, client: c.Client, passes: 1}, nil
}

// TakePasses takes n passes for keys that OpenHeld opens. Value.Close gives back that of a key, and OpenHeld itself
// where there is no value.
func (c *Call) TakePasses(n int) error { return c.Server.gate.pass(c.Ctx, c.Client, n, false) }

// GivePasses gives back passes for keys that were not opened.
func (c *Call) GivePasses(n int) { c.Server.gate.free(c.Client, n, 0) }

// TakeMemory takes memory for n bytes, and returns what gives it back.
func (c *Call) TakeMemory(n int64) (free func(), err error) {
	if err := c.Server.gate.row(c.Ctx, n); err != nil {
		return nil, err
	}
	return func() { c.Server.gate.free(c.Client, 0, n) }, nil
}
