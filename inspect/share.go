package inspect

import (
	"context"
	"sync"
	"sync/atomic"

	"kvferry/record"
)

// rowsHeld is the maximum number of copies of a row in memory while it is read, including slack: raw, decompressed,
// copied, and garbage not yet collected.
const rowsHeld = 8

// sharing limits the number of parts read in parallel while rows are so large that the workers together would exceed
// the memory. Parts wait between two rows; the part with the largest rows never waits.
type sharing struct {
	memory  int64
	workers int
	first   sync.Mutex  // held by a part until its first record is read, so that not all meet a large one at once
	large   atomic.Bool // true if a part has read rows too large for all workers

	mu      sync.Mutex
	turn    *sync.Cond
	parts   []*share // parts being read or waiting
	running int      // number of parts not waiting
}

// share is one part's share of the memory.
type share struct {
	of      *sharing
	begun   func()
	largest int64 // largest number of bytes read at once
}

// newSharing divides memory among workers. It returns nil for a single worker.
func newSharing(ctx context.Context, memory int64, workers int) *sharing {
	if workers < 2 {
		return nil
	}
	s := &sharing{memory: memory, workers: workers}
	s.turn = sync.NewCond(&s.mu)
	context.AfterFunc(ctx, s.changed)
	return s
}

// changed wakes all waiting parts.
func (s *sharing) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.Broadcast()
}

// begin registers a part. A nil sharing returns a nil share.
func (s *sharing) begin() *share {
	if s == nil {
		return nil
	}
	s.first.Lock()
	p := &share{of: s, begun: sync.OnceFunc(s.first.Unlock)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, p)
	s.running++
	return p
}

// end unregisters the part and wakes waiting parts.
func (p *share) end() {
	if p == nil {
		return
	}
	p.begun()
	s := p.of
	s.mu.Lock()
	defer s.mu.Unlock()
	large := false
	kept := s.parts[:0]
	for _, q := range s.parts {
		if q != p {
			kept = append(kept, q)
			large = large || q.largest > s.most()
		}
	}
	s.parts = kept
	s.running--
	s.large.Store(large)
	s.turn.Broadcast()
}

// most is the number of bytes that every worker may read at once.
func (s *sharing) most() int64 { return s.memory / int64(rowsHeld*s.workers) }

// took records the number of bytes that a part has read at once.
func (p *share) took(bytes int64) {
	if bytes <= p.of.most() {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.largest = max(p.largest, bytes)
	p.of.large.Store(true)
}

// wait blocks while rows are too large for all running parts to continue.
func (p *share) wait(ctx context.Context) {
	s := p.of
	if !s.large.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil && s.waits(p) {
		s.running--
		s.turn.Wait()
		s.running++
	}
}

// waits reports whether a part must wait. s.mu must be held.
func (s *sharing) waits(p *share) bool {
	largest := s.parts[0]
	for _, q := range s.parts {
		if q.largest > largest.largest {
			largest = q
		}
	}
	if largest.largest <= s.most() || p == largest {
		return false
	}
	return s.running > int(max(1, s.memory/(rowsHeld*largest.largest)))
}

// sharedReader reads a part under a memory share.
type sharedReader struct {
	record.Reader
	ctx   context.Context
	share *share
}

// shared wraps r if the part shares memory.
func (p Part) shared(ctx context.Context, r record.Reader) record.Reader {
	if p.share == nil {
		return r
	}
	return &sharedReader{r, ctx, p.share}
}

// Next waits for its turn, then reads records.
func (r *sharedReader) Next() (*record.Batch, error) {
	r.share.wait(r.ctx)
	b, err := r.Reader.Next()
	if err != nil {
		return nil, err
	}
	r.share.took(b.Bytes())
	if len(b.Elems) > 0 {
		r.share.begun()
	}
	return b, nil
}
