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

// Cores counts who of so many workers is busy.
type Cores struct {
	all  int32
	busy atomic.Int32
}

// NewCores counts so many workers.
func NewCores(workers int) *Cores { return &Cores{all: int32(workers)} }

// Spare runs f on a core that no worker needs, if there is one.
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

// Run calls do for each task, largest first, on as many goroutines as there are workers. The first error stops all;
// it is returned when every goroutine has ended.
func Run(ctx context.Context, tasks []*plan.Task, c *Cores, do func(context.Context, *plan.Task) error) error {
	return runSome(ctx, tasks, int(c.all), c, do)
}

// runSome is Run on so many goroutines.
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

// largeError says that a task met more at once than it may hold beside the others.
type largeError struct{ bytes int64 }

func (e *largeError) Error() string {
	return fmt.Sprintf("%d bytes at once, too much for tasks that run at the same time", e.bytes)
}

// rowsHeld is how many times a row is in memory at most while it is moved, with what is spare: what was read, unpacked,
// copied into a block, packed.
const rowsHeld = 16

// mostAtOnce is how many bytes of elements a task may be handed at once while so many run. One by itself takes what
// comes.
func mostAtOnce(memory int64, workers int) int64 {
	if workers <= 1 {
		return math.MaxInt64
	}
	return memory / int64(rowsHeld*workers)
}

// Share is what a task may hold while others run.
type Share struct {
	most  int64  // bytes that it is handed at once
	first func() // lets the next task begin
}

// Take looks at what a task was handed at once.
func (s *Share) Take(elems []record.Element) error {
	if s.most < math.MaxInt64 {
		return s.handed(record.BatchBytes(elems))
	}
	s.first()
	return nil
}

// TakeStrings does so for strings.
func (s *Share) TakeStrings(batch []record.StringRecord) error {
	if s.most < math.MaxInt64 {
		return s.handed(record.StringBytes(batch))
	}
	s.first()
	return nil
}

func (s *Share) handed(bytes int64) error {
	if bytes > s.most {
		return &largeError{bytes}
	}
	s.first()
	return nil
}

// RunSharing is Run for tasks that share a promise of memory. One begins when the one before it has seen its first
// rows, so that not all meet the first large one at the same time. Those that meet rows so large that not all workers
// may hold one stop, and run again when the others are done, as many at once as such rows allow.
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
				debug.FreeOSMemory() // what it held is in the way of the others
			}
			return err
		})
		if err != nil || len(again) == 0 {
			return err
		}
		tasks, workers = again, int(max(1, min(int64(workers)/2, memory/(rowsHeld*largest))))
	}
}

// LargestFirst returns tasks by how much there is to do; those of the same stay in their order.
func LargestFirst(tasks []*plan.Task) []*plan.Task {
	out := slices.Clone(tasks)
	slices.SortStableFunc(out, func(a, b *plan.Task) int { return cmp.Compare(b.Work(), a.Work()) })
	return out
}
