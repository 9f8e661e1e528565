package pass

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRun checks that all tasks run, large ones first, on as many workers as there are, and that the first error stops
// them.
func TestRun(t *testing.T) {
	var tasks []Task
	for i := range 30 {
		tasks = append(tasks, Task{N: i, Bytes: int64(i)})
	}
	bad := errors.New("bad")
	for _, workers := range []int{0, 1, 2, 4, 64} {
		var done, busy atomic.Int64
		var first atomic.Int64
		first.Store(-1)
		c := NewCores(workers)
		err := Run(context.Background(), tasks, c, Memory{1 << 20, 1}, func(_ context.Context, x *Task) error {
			first.CompareAndSwap(-1, int64(x.N))
			if n := busy.Add(1); n > int64(max(workers, 1)) {
				t.Errorf("%d tasks run on %d workers", n, workers)
			}
			defer busy.Add(-1)
			done.Add(1)
			return nil
		})
		if err != nil || done.Load() != 30 || c.busy.Load() != 0 {
			t.Errorf("%d workers: %d tasks are done, %d workers busy, %v", workers, done.Load(), c.busy.Load(), err)
		}
		if workers < 2 && first.Load() != 29 {
			t.Errorf("task %d ran first", first.Load())
		}
		err = Run(context.Background(), tasks, c, Memory{1 << 20, 1}, func(ctx context.Context, x *Task) error {
			if x.N == 7 {
				return bad
			}
			if x.N < 7 {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		if err != bad {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
}

// TestSpareCores checks that Spare lends as many cores as are idle, and again after they are returned.
func TestSpareCores(t *testing.T) {
	c := &Cores{all: 3}
	c.busy.Add(1) // a worker
	var wg sync.WaitGroup
	stop := make(chan struct{})
	lend := func() bool {
		wg.Add(1)
		ok := c.Spare(func() { <-stop; wg.Done() })
		if !ok {
			wg.Done()
		}
		return ok
	}
	if first, second, third := lend(), lend(), lend(); !first || !second || third {
		t.Error("of 3 cores and 1 worker 2 are to spare")
	}
	close(stop)
	wg.Wait()
	for c.busy.Load() != 1 {
		runtime.Gosched()
	}
	stop = make(chan struct{})
	if !lend() {
		t.Error("cores are not given back")
	}
	close(stop)
	wg.Wait()
}
