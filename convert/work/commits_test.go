package work

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestCommits checks that workers continue while their results are written, but at most one task ahead, and that an
// error stops them.
func TestCommits(t *testing.T) { synctest.Test(t, testCommits) }

func testCommits(t *testing.T) {
	const workers = 2
	c := NewCommits(workers)
	release := make(chan struct{})
	var done atomic.Int64
	slow := func() error {
		<-release
		done.Add(1)
		return nil
	}
	for range workers {
		if err := c.Start(slow); err != nil { // returns before the result is written
			t.Fatal(err)
		}
	}
	third := make(chan error, 1)
	go func() { third <- c.Start(slow) }()
	synctest.Wait()
	if len(third) != 0 {
		t.Error("two results wait for the disk, and a third task has started")
	}
	close(release)
	if err := <-third; err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil || done.Load() != 3 {
		t.Errorf("%d of 3 are written, %v", done.Load(), err)
	}

	bad := errors.New("bad")
	if err := c.Start(func() error { return bad }); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != bad {
		t.Errorf("%v", err)
	}
	if err := c.Start(slow); err != bad || done.Load() != 3 {
		t.Errorf("after an error: %v, %d written", err, done.Load())
	}
}
