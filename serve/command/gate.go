package command

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"kvferry/internal/shared/argument"
)

const (
	// smallPasses limits the open passes of commands that have read little so far; largePasses limits those that read whole
	// collections or list keys. Scans may park maxParked more between pages.
	smallPasses = 16
	largePasses = 32
	// A small pass reads up to smallElements and smallBytes. Such a reply fits into the write buffer and is sent after the
	// pass has closed, so a client that does not read it blocks nobody.
	smallElements = 512
	smallBytes    = 24 << 10
	// lookEvery is the time after which a command that reads looks whether its client is still there.
	lookEvery = 250 * time.Millisecond
	// largeRow is the size from which elements count against the memory, and are not copied.
	largeRow = 64 << 10
	// stalled is the time after which a client that accepts no bytes gives up its turn, while others wait. patience is the
	// time after which it is disconnected if it holds something else.
	stalled  = time.Second
	patience = 5 * time.Second
)

// gate shares passes, memory and processors among clients. Small commands never wait for large ones. If a client accepts no
// bytes while others wait, its large pass is closed, and later continues where it stopped. If the client holds anything
// else, it is disconnected.
type gate struct {
	shares  [2]*semaphore.Weighted // small and large passes
	rows    *semaphore.Weighted    // bytes of large elements
	several *semaphore.Weighted    // of commands that hold those of several keys, one may
	reading [2]chan struct{}       // one for each goroutine that reads, apart for small and large passes
	memory  int64

	mu      sync.Mutex
	request int64 // bytes of large requests
	holders map[*Client]int
	values  map[*gated]struct{} // with a large pass that may be taken from them
	passes  atomic.Int64
	bytes   atomic.Int64
}

func newGate(memory int64) *gate {
	memory = max(memory/4, 1<<20)
	procs := runtime.GOMAXPROCS(0)
	return &gate{shares: [2]*semaphore.Weighted{semaphore.NewWeighted(smallPasses), semaphore.NewWeighted(largePasses)}, rows: semaphore.NewWeighted(memory), several: semaphore.NewWeighted(1),
		reading: [2]chan struct{}{make(chan struct{}, 2*procs), make(chan struct{}, procs)}, memory: memory,
		holders: map[*Client]int{}, values: map[*gated]struct{}{}}
}

// wait takes n of what clients share, in the order in which they ask for it.
func (g *gate) wait(ctx context.Context, of *semaphore.Weighted, n int64) error {
	if of.TryAcquire(n) {
		return nil
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for tick := time.NewTicker(stalled / 4); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				g.reclaim()
			}
		}
	}()
	if of.Acquire(ctx, n) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// reclaim closes the large pass of a stalled client. If there is none, it disconnects the client that stalled first.
func (g *gate) reclaim() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for v := range g.values {
		if v.client.stalledFor(stalled) && v.stop() {
			return
		}
	}
	var worst *Client
	least := int64(math.MaxInt64)
	for cl := range g.holders {
		if since := cl.Stalled.Load(); cl.stalledFor(patience) && since < least {
			worst, least = cl, since
		}
	}
	if worst != nil {
		worst.Kill()
	}
}

// stalledFor reports whether the client has accepted no bytes for some time.
func (cl *Client) stalledFor(d time.Duration) bool {
	since := cl.Stalled.Load()
	return since != 0 && since < time.Now().Add(-d).UnixNano()
}

// hold counts the resources of a client, which others may be waiting for.
func (g *gate) hold(cl *Client, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held(cl, n)
}

func (g *gate) held(cl *Client, n int) {
	if g.holders[cl] += n; g.holders[cl] <= 0 {
		delete(g.holders, cl)
	}
}

// take takes n passes for a client, and give gives them back.
func (g *gate) take(ctx context.Context, cl *Client, of share, n int) error {
	if err := g.wait(ctx, g.shares[of], int64(n)); err != nil {
		return err
	}
	g.passes.Add(int64(n))
	g.hold(cl, n)
	return nil
}

func (g *gate) give(cl *Client, of share, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.given(cl, of, n)
}

func (g *gate) given(cl *Client, of share, n int) {
	if g.passes.Add(int64(-n)); of != parkedShare {
		g.held(cl, -n)
		g.shares[of].Release(int64(n))
	}
}

// hold is a pass that a client has.
type hold struct {
	gate   *gate
	ctx    context.Context
	client *Client
	share  share
}

// park takes the pass from its client.
func (h *hold) park(ctx context.Context) {
	h.gate.give(h.client, h.share, 1)
	h.gate.passes.Add(1)
	*h = hold{h.gate, ctx, nobody, parkedShare}
}

// resume gives a parked pass to a client.
func (h *hold) resume(ctx context.Context, to *Client) error {
	if err := h.gate.take(ctx, to, smallShare, 1); err != nil {
		return err
	}
	h.gate.passes.Add(-1)
	*h = hold{h.gate, ctx, to, smallShare}
	return nil
}

// errMemory refuses a command whose large elements do not fit beside each other.
var errMemory = argument.Refuse("ERR large elements of several keys need more memory at a time than --memory has for them; " +
	"try again with fewer keys, or serve with more --memory")

// row takes memory for large elements, and returns what gives it back. More than there is for all waits until no other
// is held. Commands that hold those of several keys at a time would wait for each other: one at a time holds any.
func (g *gate) row(ctx context.Context, cl *Client, n int64, several bool) (free func(), err error) {
	if n = min(n, g.memory); cl.rows+n > g.memory {
		return nil, errMemory
	}
	if several = several && cl.rows == 0; several {
		if err := g.wait(ctx, g.several, 1); err != nil {
			return nil, err
		}
	}
	if err := g.wait(ctx, g.rows, n); err != nil {
		if several {
			g.several.Release(1)
		}
		return nil, err
	}
	cl.rows += n
	cl.several = cl.several || several
	g.bytes.Add(n)
	g.hold(cl, 1)
	return func() {
		if cl.rows -= n; cl.several && cl.rows == 0 {
			cl.several = false
			g.several.Release(1)
		}
		g.hold(cl, -1)
		g.bytes.Add(-n)
		g.rows.Release(n)
	}, nil
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

// Held returns the number of passes in use, and the bytes of large elements in memory.
func (s *Server) Held() (passes int, bytes int64) {
	return int(s.gate.passes.Load()), s.gate.bytes.Load()
}

// errGone ends a command whose client has closed the connection.
var errGone = errors.New("the client has closed the connection")

// look returns an error if the client has gone. It looks now and then.
func (cl *Client) look() error {
	if cl.Gone == nil || time.Since(cl.looked) < lookEvery {
		return nil
	}
	if cl.looked = time.Now(); cl.Gone() {
		return errGone
	}
	return nil
}

// share is the class of a pass: each class has its own limit.
type share int

const (
	smallShare share = iota
	largeShare
	parkedShare // it waits for the next page of a scan
)

// turn waits until a goroutine may read, and returns what ends its turn. Who holds large elements has a turn at once: those
// whose turn it is may wait for their memory.
func (g *gate) turn(ctx context.Context, cl *Client, of share) (end func(), err error) {
	if cl.rows > 0 {
		return func() {}, nil
	}
	turns := g.reading[of]
	select {
	case turns <- struct{}{}: // the usual case, at the cost of one channel
		return func() { <-turns }, nil
	default:
	}
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
