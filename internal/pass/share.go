package pass

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"kvferry/record"
)

// Memory is the memory that tasks share.
type Memory struct {
	Bytes int64
	// Held is the maximum number of copies of a row in memory while a task reads or moves it, including slack: raw,
	// decompressed, copied, compressed, and garbage not yet collected.
	Held int
}

// sharing limits the number of tasks that run in parallel while rows are so large that the workers together would
// exceed the memory. Tasks wait between two batches; the task with the largest rows never waits.
type sharing struct {
	Memory
	workers int
	first   sync.Mutex  // held by a task until its first record is read, so that not all meet a large one at once
	large   atomic.Bool // true if a task has read rows too large for all workers

	mu      sync.Mutex
	turn    *sync.Cond
	tasks   []*share // tasks that run or wait
	running int      // number of tasks not waiting
}

// share is a task's share of the memory; nil if it has no limit.
type share struct {
	of      *sharing
	begun   func()
	largest int64 // largest number of bytes read at once
}

// newSharing divides memory among workers. It returns nil for a single worker.
func newSharing(ctx context.Context, m Memory, workers int) *sharing {
	if workers < 2 {
		return nil
	}
	s := &sharing{Memory: m, workers: workers}
	s.turn = sync.NewCond(&s.mu)
	context.AfterFunc(ctx, s.changed)
	return s
}

// changed wakes all waiting tasks.
func (s *sharing) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.Broadcast()
}

// begin registers a task. A nil sharing returns a nil share.
func (s *sharing) begin() *share {
	if s == nil {
		return nil
	}
	s.first.Lock()
	p := &share{of: s, begun: sync.OnceFunc(s.first.Unlock)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, p)
	s.running++
	return p
}

// end unregisters the task and wakes waiting tasks.
func (p *share) end() {
	if p == nil {
		return
	}
	p.begun()
	s := p.of
	s.mu.Lock()
	defer s.mu.Unlock()
	large := false
	kept := s.tasks[:0]
	for _, q := range s.tasks {
		if q != p {
			kept = append(kept, q)
			large = large || q.largest > s.most()
		}
	}
	s.tasks = kept
	s.running--
	s.large.Store(large)
	s.turn.Broadcast()
}

// most is the number of bytes that every worker may read at once.
func (s *sharing) most() int64 { return s.Bytes / int64(s.Held*s.workers) }

// took records the number of bytes that a task has read at once.
func (p *share) took(bytes int64) {
	if bytes <= p.of.most() {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.largest = max(p.largest, bytes)
	p.of.large.Store(true)
}

// wait blocks while rows are too large for all running tasks to continue.
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

// waits reports whether a task must wait. s.mu must be held.
func (s *sharing) waits(p *share) bool {
	largest := s.tasks[0]
	for _, q := range s.tasks {
		if q.largest > largest.largest {
			largest = q
		}
	}
	if largest.largest <= s.most() || p == largest {
		return false
	}
	return s.running > int(max(1, s.Bytes/(int64(s.Held)*largest.largest)))
}

// reader reads under a share of the memory.
type reader struct {
	record.Reader
	ctx   context.Context
	share *share
}

// Shared returns a reader of r, rows of the task, that waits while rows are too large for all running tasks.
func (t *Task) Shared(ctx context.Context, r record.Reader) record.Reader {
	if t.share == nil {
		return r
	}
	return &reader{r, ctx, t.share}
}

// Next waits for its turn, then reads records.
func (r *reader) Next() (*record.Batch, error) {
	r.share.wait(r.ctx)
	b, err := r.Reader.Next()
	if err != nil {
		return nil, err
	}
	r.share.took(b.Bytes())
	if len(b.Elems) > 0 || !b.More {
		r.share.begun()
	}
	return b, nil
}

// LeastShare is the minimum share of a task.
const LeastShare = 2 << 20

// Shares divides memory among tasks in proportion to their size, so that one giant task gets nearly all of it. The
// shares of any tasks that run at the same time add up to at most the whole, except for minimum shares.
type Shares struct {
	whole int64
	top   int64 // total size of the largest tasks, one per worker
}

// NewShares divides memory among tasks that run on the given number of workers.
func NewShares(whole int64, tasks []Task, workers int) Shares {
	sizes := make([]int64, len(tasks))
	for i, t := range tasks {
		sizes[i] = t.Bytes
	}
	slices.SortFunc(sizes, func(a, b int64) int { return cmp.Compare(b, a) })
	s := Shares{whole: whole}
	for _, n := range sizes[:min(workers, len(sizes))] {
		s.top += n
	}
	return s
}

// Of returns the share of a task.
func (s Shares) Of(t *Task) int64 {
	if s.top == 0 {
		return s.whole
	}
	return max(LeastShare, int64(float64(s.whole)*float64(t.Bytes)/float64(s.top)))
}
