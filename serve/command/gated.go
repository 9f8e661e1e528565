package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"kvferry/record"
)

// gated is a value that a client reads under the gate. It begins with a small share, unless the caller took passes for
// several values.
type gated struct {
	hold
	open   func() (Value, error) // opens the value at its start
	fixed  bool                  // the pass cannot be taken away: its command holds others, too
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

// start opens the value with the pass that it has. If there is no value, it returns the pass.
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
	_ = v.value.Close() // Read has returned any error
	v.value = nil
	delete(v.gate.values, v)
	v.gate.given(v.client, v.share, 1)
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
	if err == io.EOF { // the value was longer before
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

// maxPart is the size up to which a large string is copied.
const maxPart = 4 << 20

// part closes the pass of a large string before the string is sent, so that a slow client does not hold it. The string's
// memory stays reserved until Close.
func (v *gated) part(b []byte) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.share != largeShare || len(b) > maxPart {
		return b, nil
	}
	if v.rows != nil {
		b = bytes.Clone(b)
	}
	return b, v.close()
}

// park detaches the pass from its client. If the pass was closed by stop, the value has none.
func (v *gated) park(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gate.mu.Lock()
	delete(v.gate.values, v)
	v.gate.mu.Unlock()
	if v.value != nil {
		v.hold.park(ctx)
	}
	v.hold = hold{v.gate, ctx, nobody, parkedShare}
}

// resume takes over a parked pass.
func (v *gated) resume(ctx context.Context, to *Client) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.value != nil {
		if err := v.hold.resume(ctx, to); err != nil {
			return err
		}
	}
	v.hold, v.recent, v.bytes = hold{v.gate, ctx, to, smallShare}, 0, 0
	return nil
}

// gatedScanner is a pass over keys that a client reads.
type gatedScanner struct {
	Scanner
	hold
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

// nobody is the client of parked passes.
var nobody = &Client{Kill: func() {}}

// take takes a pass. It first sends what earlier commands wrote: the reply of a small pass then fits into the buffer.
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
	return &gatedScanner{s, hold{g, c.Ctx, c.Client, of}}, nil
}

// openGated opens the value of a key. A fixed value has a large pass that the caller took, which Close gives back.
func (c *Call) openGated(key []byte, how Reading, fixed bool) (*gated, error) {
	ctx := c.Ctx
	if how.lasting {
		ctx = c.Server.ctx()
	}
	key, db := bytes.Clone(key), c.Client.DB
	v := &gated{hold: hold{gate: c.Server.gate, ctx: c.Ctx, client: c.Client}, fixed: fixed, open: func() (Value, error) {
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
