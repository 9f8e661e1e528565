package convert

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// runPool calls do for each task, largest first, on so many goroutines. The first error stops all;
// it is returned when every goroutine has ended.
func runPool(ctx context.Context, tasks []*Task, workers int, do func(context.Context, *Task) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan *Task, len(tasks))
	for _, t := range largestFirst(tasks) {
		queue <- t
	}
	close(queue)
	var wg sync.WaitGroup
	for range min(workers, len(tasks)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
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

func largestFirst(tasks []*Task) []*Task {
	out := slices.Clone(tasks)
	slices.SortStableFunc(out, func(a, b *Task) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// closing joins the error of a close to an earlier one.
func closing(err *error, close func() error) {
	*err = errors.Join(*err, close())
}
