// Package pass is how a dataset is walked: tasks are planned, run by several workers within a limit of memory, and each
// is opened as a reader of the selected records. It does not know what is done with the records.
package pass

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Cores counts the busy workers.
type Cores struct {
	all  int32
	busy atomic.Int32
}

// NewCores returns Cores for the given number of workers; the least is 1.
func NewCores(workers int) *Cores { return &Cores{all: int32(max(workers, 1))} }

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

// Run calls do for each task, largest first, with one goroutine per worker. The tasks share m. The first error cancels
// the rest; Run returns it after all goroutines have ended.
func Run(ctx context.Context, tasks []Task, c *Cores, m Memory, do func(context.Context, *Task) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan Task, len(tasks))
	for _, t := range LargestFirst(tasks) {
		queue <- t
	}
	close(queue)
	var wg sync.WaitGroup
	workers := min(int(c.all), len(tasks))
	shares := newSharing(ctx, m, workers)
	for range workers {
		wg.Go(func() {
			c.busy.Add(1)
			defer c.busy.Add(-1)
			for t := range queue {
				if ctx.Err() != nil {
					return
				}
				t.share = shares.begin()
				err := do(ctx, &t)
				t.share.end()
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// LargestFirst returns tasks by decreasing work. Equal tasks keep their order.
func LargestFirst(tasks []Task) []Task {
	out := slices.Clone(tasks)
	slices.SortStableFunc(out, func(a, b Task) int { return cmp.Compare(b.Work(), a.Work()) })
	return out
}
