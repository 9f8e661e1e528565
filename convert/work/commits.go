package work

import "sync"

// Commits writes finished tasks to the journal in the background, so that workers do not wait for the disk after
// every task. At most one entry per worker is in flight.
type Commits struct {
	slots   chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	err     error // the first one
}

// NewCommits returns Commits for the given number of workers.
func NewCommits(workers int) *Commits { return &Commits{slots: make(chan struct{}, workers)} }

// Start runs f in the background once a slot is free. After an error it returns that error instead.
func (c *Commits) Start(f func() error) error {
	c.slots <- struct{}{}
	if err := c.failed(); err != nil {
		<-c.slots
		return err
	}
	c.running.Go(func() {
		defer func() { <-c.slots }()
		if err := f(); err != nil {
			c.fail(err)
		}
	})
	return nil
}

// Wait waits until all started functions have ended.
func (c *Commits) Wait() error {
	c.running.Wait()
	return c.failed()
}

func (c *Commits) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *Commits) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
