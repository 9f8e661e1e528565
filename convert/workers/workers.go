package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"kvferry/convert/plan"
	"kvferry/record"
)

// Cores counts the busy workers.
type Cores struct {
	all  int32
	busy atomic.Int32
}

// NewCores returns Cores for the given number of workers.
func NewCores(workers int) *Cores { return &Cores{all: int32(workers)} }

// Spare runs f in the background and returns true if a worker is idle. Otherwise it returns false.
func (c *Cores) Spare(f func()) bool {
	if c.busy.Add(1) > c.all {
		c.busy.Add(-1)
		return false
	}
	go func() {
		defer c.busy.Add(-1)
		f()
	}()
	return true
}

// Run calls do for each task, largest first, with one goroutine per worker. The first error cancels the rest; Run
// returns it after all goroutines have ended.
func Run(ctx context.Context, tasks []*plan.Task, c *Cores, do func(context.Context, *plan.Task) error) error {
	return runSome(ctx, tasks, int(c.all), c, do)
}

// runSome is Run with another number of workers.
func runSome(ctx context.Context, tasks []*plan.Task, workers int, c *Cores, do func(context.Context, *plan.Task) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan *plan.Task, len(tasks))
	for _, t := range LargestFirst(tasks) {
		queue <- t
	}
	close(queue)
	var wg sync.WaitGroup
	for range min(workers, len(tasks)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c.busy.Add(1)
			defer c.busy.Add(-1)
			for t := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, t); err != nil {
					cancel(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// largeError means that a task received more data at once than its share.
type largeError struct{ bytes int64 }

func (e *largeError) Error() string {
	return fmt.Sprintf("%d bytes at once, too much for tasks that run at the same time", e.bytes)
}

// rowsHeld is the maximum memory for moving a row, as a multiple of its size: it is read, decompressed, copied into a
// block and compressed.
const rowsHeld = 16

// mostAtOnce returns the number of element bytes that a task may receive at once. A single worker has no limit.
func mostAtOnce(memory int64, workers int) int64 {
	if workers <= 1 {
		return math.MaxInt64
	}
	return memory / int64(rowsHeld*workers)
}

// Share limits the data that a task receives at once.
type Share struct {
	most  int64  // bytes per batch
	first func() // lets the next task start
}

// Take checks the size of a batch.
func (s *Share) Take(b *record.Batch) error {
	if s.most < math.MaxInt64 {
		if bytes := b.Bytes(); bytes > s.most {
			return &largeError{bytes}
		}
	}
	s.first()
	return nil
}

// RunSharing is Run for tasks that share a memory limit. A task starts only after the previous one has received its
// first rows, so that not all of them meet a first large row at the same time. A task that receives a row too large
// for its share stops. It runs again after the others, with as many workers as such rows allow.
func RunSharing(ctx context.Context, tasks []*plan.Task, c *Cores, memory int64, do func(context.Context, *plan.Task, *Share) error) error {
	workers := int(c.all)
	for {
		workers = min(workers, len(tasks))
		var mu, begin sync.Mutex
		var again []*plan.Task
		var largest int64
		most := mostAtOnce(memory, workers)
		err := runSome(ctx, tasks, workers, c, func(ctx context.Context, t *plan.Task) error {
			begin.Lock()
			begun := sync.OnceFunc(begin.Unlock)
			defer begun()
			err := do(ctx, t, &Share{most, begun})
			var large *largeError
			if errors.As(err, &large) {
				mu.Lock()
				defer mu.Unlock()
				again, largest, err = append(again, t), max(largest, large.bytes), nil
				debug.FreeOSMemory() // free its memory for the other tasks
			}
			return err
		})
		if err != nil || len(again) == 0 {
			return err
		}
		tasks, workers = again, int(max(1, min(int64(workers)/2, memory/(rowsHeld*largest))))
	}
}

// LargestFirst returns tasks by decreasing work. Equal tasks keep their order.
func LargestFirst(tasks []*plan.Task) []*plan.Task {
	out := slices.Clone(tasks)
	slices.SortStableFunc(out, func(a, b *plan.Task) int { return cmp.Compare(b.Work(), a.Work()) })
	return out
}
