package convert

import "sync"

// commits writes finished tasks to the journal beside the workers, which would otherwise wait for the disk after every
// task. No worker is more than one task ahead of it.
type commits struct {
	slots   chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	err     error // the first one
}

func newCommits(workers int) *commits { return &commits{slots: make(chan struct{}, workers)} }

// start runs f in the background once there is room. After an error it returns that instead.
func (c *commits) start(f func() error) error {
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

// wait returns when all that was started is done.
func (c *commits) wait() error {
	c.running.Wait()
	return c.failed()
}

func (c *commits) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *commits) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
