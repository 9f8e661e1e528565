package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"kvferry/internal/shared/argument"
	"kvferry/record"
)

const (
	// smallPasses is the number of passes at a time of commands that have read little so far, and largePasses that of those
	// that read whole collections or list keys. maxParked more wait for the next page of a scan.
	smallPasses = 16
	largePasses = 32
	// smallElements and smallBytes limit what a small pass reads. A reply with so much is sent after the pass has ended: a
	// client that does not read it holds nothing that others wait for.
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

// gate shares passes, memory and processors among clients. Commands that read little never wait for those that read much.
// A pass that reads much is closed while its client accepts no bytes and others wait; it goes on later, where it was. What
// a client holds otherwise while others wait costs it the connection.
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

// reclaim takes a pass from a client that has stalled, or disconnects the one that has stalled the longest.
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

// hold counts what a client holds that others may wait for.
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
	if g.passes.Add(int64(-n)); of != parkedShare {
		g.hold(cl, -n)
		g.shares[of].Release(int64(n))
	}
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

// share is what a pass takes from the others.
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
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// gated is a value that a client reads under the gate. It begins with a small share, unless the caller took passes for
// several values.
type gated struct {
	gate   *gate
	open   func() (Value, error) // opens the value at its start
	ctx    context.Context
	client *Client
	share  share
	fixed  bool // the pass cannot be taken away: its command holds others, too
	header record.Kept
	read   int64 // elements since the start
	recent int64 // elements since the small share began
	bytes  int64 // of them

	mu    sync.Mutex // held while it reads
	value Value      // nil: its pass was taken away
	arena []byte     // the last elements of a large pass, so that it can be closed
	rows  func()     // gives back the memory of the large elements read last
}

// Header returns the header, which outlives the pass.
func (v *gated) Header() *record.Header { return &v.header.Header }

// start opens the value with the pass that it has. It gives back the pass if there is no value.
func (v *gated) start() (there bool, err error) {
	end, err := v.gate.turn(v.ctx, v.client, v.share)
	if err == nil {
		v.value, err = v.open()
		end()
	}
	if v.value == nil || err != nil {
		v.gate.give(v.client, v.share, 1)
		return false, err
	}
	if v.header.Key == nil {
		v.header.Keep(v.value.Header())
	}
	if v.share == largeShare && !v.fixed {
		v.gate.mu.Lock()
		defer v.gate.mu.Unlock()
		v.gate.values[v] = struct{}{}
	}
	return true, nil
}

// stop closes the value, whose elements are copied, unless it is being read. The caller holds the lock of the gate.
func (v *gated) stop() bool {
	if !v.mu.TryLock() {
		return false
	}
	defer v.mu.Unlock()
	if v.value == nil || v.rows != nil {
		return false
	}
	_ = v.value.Close() // Read told what could not be read
	v.value = nil
	delete(v.gate.values, v)
	v.gate.held(v.client, -1)
	v.gate.passes.Add(-1)
	v.gate.shares[largeShare].Release(1)
	return true
}

// Read returns the next elements.
func (v *gated) Read(dst []record.Element) (n int, err error) {
	if err := v.client.look(); err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drop()
	if v.value == nil {
		err = v.again()
	}
	if err == nil {
		n, err = v.some(dst)
	}
	if err == errLarge {
		if err = errors.Join(v.close(), v.again()); err == nil {
			n, err = v.some(dst)
		}
	}
	v.read += int64(n)
	return n, err
}

// errLarge means that elements need a large share.
var errLarge = errors.New("the value is large")

// some reads elements when it is its turn.
func (v *gated) some(dst []record.Element) (int, error) {
	end, err := v.gate.turn(v.ctx, v.client, v.share)
	if err != nil {
		return 0, err
	}
	defer end() // who waits for memory keeps its turn: its elements are in memory
	n, err := v.value.Read(dst)
	if err != nil {
		return n, err
	}
	size := record.BatchBytes(dst[:n])
	v.recent, v.bytes = v.recent+int64(n), v.bytes+size
	if v.share != largeShare && (v.recent > smallElements || v.bytes > smallBytes) {
		if size >= largeRow || !v.gate.shares[largeShare].TryAcquire(1) {
			return 0, errLarge
		}
		v.grow()
	}
	switch {
	case size >= largeRow:
		v.rows, err = v.gate.row(v.ctx, v.client, size, v.fixed)
	case v.share == largeShare && !v.fixed:
		v.copy(dst[:n])
	}
	return n, err
}

// grow makes the share a large one, which was taken.
func (v *gated) grow() {
	g := v.gate
	g.give(v.client, v.share, 1)
	v.share = largeShare
	g.passes.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held(v.client, 1)
	g.values[v] = struct{}{}
}

// again opens the value with a large share, and goes on behind the elements that were read.
func (v *gated) again() error {
	v.share = largeShare
	if err := v.gate.take(v.ctx, v.client, v.share, 1); err != nil {
		return err
	}
	there, err := v.start()
	if err == nil && !there {
		err = io.ErrUnexpectedEOF
	}
	room := make([]record.Element, record.BatchLen)
	for left := v.read; left > 0 && err == nil; {
		var n int
		n, err = v.some(room[:min(left, record.BatchLen)])
		v.drop()
		left -= int64(n)
	}
	if err == io.EOF { // not the end of what the client gets
		err = io.ErrUnexpectedEOF
	}
	return err
}

// copy makes the elements independent of the value.
func (v *gated) copy(elems []record.Element) {
	v.arena = slices.Grow(v.arena[:0], int(record.BatchBytes(elems)))
	for i := range elems {
		for _, part := range []*[]byte{&elems[i].Name, &elems[i].Value} {
			if *part != nil {
				at := len(v.arena)
				v.arena = append(v.arena, *part...)
				*part = v.arena[at:len(v.arena):len(v.arena)]
			}
		}
	}
}

// drop gives back the memory of large elements.
func (v *gated) drop() {
	if v.rows != nil {
		v.rows()
		v.rows = nil
	}
}

// close closes the value, and gives back its pass.
func (v *gated) close() error {
	if v.value == nil {
		return nil
	}
	v.gate.mu.Lock()
	delete(v.gate.values, v)
	v.gate.mu.Unlock()
	err := v.value.Close()
	v.value = nil
	v.gate.give(v.client, v.share, 1)
	return err
}

// Close ends the pass.
func (v *gated) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drop()
	return v.close()
}

// park leaves the pass to nobody. A value whose pass was taken away has none.
func (v *gated) park(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gate.mu.Lock()
	delete(v.gate.values, v)
	v.gate.mu.Unlock()
	if v.value != nil {
		v.gate.give(v.client, v.share, 1)
		v.gate.passes.Add(1)
	}
	v.ctx, v.client, v.share = ctx, nobody, parkedShare
}

// resume takes over a parked pass.
func (v *gated) resume(ctx context.Context, to *Client) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.value != nil {
		if err := v.gate.take(ctx, to, smallShare, 1); err != nil {
			return err
		}
		v.gate.passes.Add(-1)
	}
	v.ctx, v.client, v.share, v.recent, v.bytes = ctx, to, smallShare, 0, 0
	return nil
}

// gatedScanner is a pass over keys that a client reads.
type gatedScanner struct {
	Scanner
	gate   *gate
	ctx    context.Context
	client *Client
	share  share
}

// Next returns the next key.
func (s *gatedScanner) Next() (*record.Header, error) {
	if err := s.client.look(); err != nil {
		return nil, err
	}
	if s.share == largeShare {
		end, err := s.gate.turn(s.ctx, s.client, s.share)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	return s.Scanner.Next()
}

// Close ends the pass.
func (s *gatedScanner) Close() error {
	err := s.Scanner.Close()
	s.gate.give(s.client, s.share, 1)
	return err
}

func (s *gatedScanner) park(ctx context.Context) {
	s.gate.give(s.client, s.share, 1)
	s.gate.passes.Add(1)
	s.ctx, s.client, s.share = ctx, nobody, parkedShare
}

func (s *gatedScanner) resume(ctx context.Context, to *Client) error {
	if err := s.gate.take(ctx, to, smallShare, 1); err != nil {
		return err
	}
	s.gate.passes.Add(-1)
	s.ctx, s.client, s.share = ctx, to, smallShare
	return nil
}

// nobody owns parked passes.
var nobody = &Client{Kill: func() {}}

// take takes a pass. What was written before is sent first: so little that is read with a small pass fits into the buffer.
func (c *Call) take(of share) error {
	if c.W.Drain(); c.W.Err() != nil {
		return c.W.Err()
	}
	return c.Server.gate.take(c.Ctx, c.Client, of, 1)
}

// ScanFrom opens a pass over a page of keys after a position.
func (c *Call) ScanFrom(ctx context.Context, after *Position) (*gatedScanner, error) {
	return c.scanFrom(ctx, after, smallShare)
}

func (c *Call) scanFrom(ctx context.Context, after *Position, of share) (*gatedScanner, error) {
	g := c.Server.gate
	if err := c.take(of); err != nil {
		return nil, err
	}
	s, err := c.Server.Keys.Scan(ctx, c.Client.DB, after)
	if err != nil {
		g.give(c.Client, of, 1)
		return nil, err
	}
	return &gatedScanner{Scanner: s, gate: g, ctx: c.Ctx, client: c.Client, share: of}, nil
}

// openGated opens the value of a key. A fixed value has a large pass that the caller took, which Close gives back.
func (c *Call) openGated(key []byte, how Reading, fixed bool) (*gated, error) {
	ctx := c.Ctx
	if how.lasting {
		ctx = c.Server.ctx()
	}
	key, db := bytes.Clone(key), c.Client.DB
	v := &gated{gate: c.Server.gate, ctx: c.Ctx, client: c.Client, fixed: fixed, open: func() (Value, error) {
		return c.Server.Keys.Open(ctx, db, key, how)
	}}
	if fixed {
		v.share = largeShare
	} else if err := c.take(smallShare); err != nil {
		return nil, err
	}
	if there, err := v.start(); !there || err != nil {
		return nil, err
	}
	return v, nil
}

// TakePasses takes n passes for keys that OpenHeld opens. Value.Close gives back that of a key, and OpenHeld itself
// where there is no value.
func (c *Call) TakePasses(n int) error { return c.Server.gate.take(c.Ctx, c.Client, largeShare, n) }

// GivePasses gives back passes for keys that were not opened.
func (c *Call) GivePasses(n int) { c.Server.gate.give(c.Client, largeShare, n) }

// TakeMemory takes memory for n bytes, and returns what gives it back.
func (c *Call) TakeMemory(n int64) (free func(), err error) {
	return c.Server.gate.row(c.Ctx, c.Client, n, false)
}
