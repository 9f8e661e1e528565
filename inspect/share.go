package inspect

import (
	"context"
	"sync"
	"sync/atomic"

	"kvferry/record"
)

// rowsHeld is how many times a row is in memory at most while it is read, with what is spare: as it was on disk, unpacked,
// copied, and what the collector has not come to yet.
const rowsHeld = 8

// sharing lets fewer parts be read at once while rows are so large that not every worker may hold one. Parts that wait do so
// between two rows; the one with the largest rows goes on.
type sharing struct {
	memory  int64
	workers int
	first   sync.Mutex  // held by a part until it has met its first record, so that not all meet a large one at once
	large   atomic.Bool // some part has met rows that are too large for all

	mu      sync.Mutex
	turn    *sync.Cond
	parts   []*share // that are being read, or wait
	running int      // of them
}

// share is what one part may hold while others are read.
type share struct {
	of      *sharing
	begun   func()
	largest int64 // bytes that were read at once
}

// newSharing divides memory among workers; nil when there is one.
func newSharing(ctx context.Context, memory int64, workers int) *sharing {
	if workers < 2 {
		return nil
	}
	s := &sharing{memory: memory, workers: workers}
	s.turn = sync.NewCond(&s.mu)
	context.AfterFunc(ctx, s.changed)
	return s
}

// changed wakes those that wait.
func (s *sharing) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.Broadcast()
}

// begin takes part in the sharing; nil if there is none.
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

// end lets others go on.
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

// most is how many bytes every worker may be handed at once.
func (s *sharing) most() int64 { return s.memory / int64(rowsHeld*s.workers) }

// took notes what a part was handed at once.
func (p *share) took(bytes int64) {
	if bytes <= p.of.most() {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.largest = max(p.largest, bytes)
	p.of.large.Store(true)
}

// wait lets others read first when the rows that some have met are so large that fewer may be held.
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

// waits reports whether a part is not to go on now; s.mu is held.
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

// sharedReader is a reader of a part that shares memory with others.
type sharedReader struct {
	record.Reader
	strings record.StringReader // that is the Reader; nil: it is none
	ctx     context.Context
	share   *share
}

// shared returns r, unless a part shares memory.
func (p Part) shared(ctx context.Context, r record.Reader) record.Reader {
	if p.share == nil {
		return r
	}
	s, _ := r.(record.StringReader)
	return &sharedReader{r, s, ctx, p.share}
}

// Next moves to the next record when it is this part's turn.
func (r *sharedReader) Next() (*record.Header, error) {
	r.share.wait(r.ctx)
	return r.Reader.Next()
}

// Read reads elements when it is this part's turn.
func (r *sharedReader) Read(dst []record.Element) (int, error) {
	r.share.wait(r.ctx)
	n, err := r.Reader.Read(dst)
	r.share.took(record.BatchBytes(dst[:n]))
	r.share.begun()
	return n, err
}

// NextStrings reads strings when it is this part's turn.
func (r *sharedReader) NextStrings() ([]record.StringRecord, error) {
	if r.strings == nil {
		return nil, nil
	}
	r.share.wait(r.ctx)
	batch, err := r.strings.NextStrings()
	if len(batch) > 0 {
		r.share.took(record.StringBytes(batch))
		r.share.begun()
	}
	return batch, err
}
