package workers

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"kvferry/convert/plan"
	"kvferry/record"
)

// zeros is the name of elements. It is never read.
var zeros = make([]byte, 4<<20)

func sized(n int64) *record.Batch {
	return &record.Batch{Records: []record.Record{{N: 1}}, Elems: []record.Element{{Name: zeros[:min(n, 4<<20)]}}}
}

// TestRunSharing checks that tasks with large rows run with fewer others, that all tasks complete, and that the first
// error stops them.
func TestRunSharing(t *testing.T) {
	const memory = 16 << 20
	rows := []int64{1, 1 << 10, 3 << 20, 1 << 20, 600 << 10, 0, 1 << 10, 4 << 20}
	var tasks []*plan.Task
	for i := range rows {
		tasks = append(tasks, &plan.Task{N: i})
	}
	for _, workers := range []int{1, 2, 4, 16} {
		var held, done, runs atomic.Int64
		err := RunSharing(context.Background(), tasks, &Cores{all: int32(workers)}, memory, func(_ context.Context, x *plan.Task, s *Share) error {
			runs.Add(1)
			if err := s.Take(sized(rows[x.N])); err != nil {
				return err
			}
			now := held.Add(rows[x.N])
			defer held.Add(-rows[x.N])
			if now > memory/rowsHeld+2<<10 && now != rows[x.N] {
				t.Errorf("%d workers: %d bytes are held at once", workers, now)
			}
			done.Add(1)
			return nil
		})
		if err != nil || done.Load() != int64(len(rows)) {
			t.Errorf("%d workers: %d of %d tasks are done, %v", workers, done.Load(), len(rows), err)
		}
		if workers == 1 && runs.Load() != int64(len(rows)) {
			t.Errorf("one worker ran %d tasks for %d", runs.Load(), len(rows))
		}
		bad := errors.New("bad")
		if err := RunSharing(context.Background(), tasks, &Cores{all: int32(workers)}, memory, func(_ context.Context, x *plan.Task, s *Share) error {
			if err := s.Take(sized(rows[x.N])); err != nil || x.N != 2 {
				return err
			}
			return bad
		}); err != bad {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
}

// TestSharesOfRounds checks that tasks with large rows rerun with as many workers as the memory allows, and at most
// half as many as before.
func TestSharesOfRounds(t *testing.T) {
	const memory = 16 << 20
	for _, c := range []struct {
		workers int
		row     int64
		want    []int64 // parallel tasks by round
	}{
		{16, 64 << 10, []int64{16}},
		{16, 64<<10 + 1, []int64{16, 8}},
		{16, 300 << 10, []int64{16, 3}},
		{4, 300 << 10, []int64{4, 2}},
		{8, 1<<20 + 1, []int64{8, 1}},
		{2, 600 << 10, []int64{2, 1}},
		{1, 2 << 20, []int64{1}},
	} {
		tasks := make([]*plan.Task, 16)
		for i := range tasks {
			tasks[i] = &plan.Task{N: i}
		}
		var mu sync.Mutex
		var got []int64
		err := RunSharing(context.Background(), tasks, &Cores{all: int32(c.workers)}, memory, func(_ context.Context, _ *plan.Task, s *Share) error {
			mu.Lock()
			defer mu.Unlock()
			at := int64(1)
			if s.most < math.MaxInt64 {
				at = memory / (rowsHeld * s.most)
			}
			if len(got) == 0 || got[len(got)-1] != at {
				got = append(got, at)
			}
			return s.Take(sized(c.row))
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d workers, rows of %d: %d at once, %v, want %d", c.workers, c.row, got, err, c.want)
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
