package keyspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/argument"
	"kvferry/serve/command"
	"kvferry/store"
)

// count is the number of keys of a database. Until done is closed, n is an estimate.
type count struct {
	done chan struct{}
	n    command.Count
	err  error // why the keys could not be counted
}

// over reports whether the count has ended.
func (c *count) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// countSpans is the number of spans to count; estimates follow from the finished ones.
const countSpans = 64

// counting returns the count of a database, which the first call for it begins in the background. retry begins again after
// an error.
func (k *Keyspace) counting(db command.Database, retry bool) *count {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.counts[db.Name]
	if c == nil || retry && c.over() && c.err != nil {
		c = &count{done: make(chan struct{}), n: command.Count{Exact: !db.Exists}}
		if k.counts[db.Name] = c; db.Exists {
			k.wg.Add(1)
			go k.count(db, c)
		} else {
			close(c.done)
		}
	}
	return c
}

// known ends the count of a database whose keys a scan has passed.
func (k *Keyspace) known(db command.Database, n command.Count) {
	k.mu.Lock()
	c := k.counts[db.Name]
	if c == nil || c.err != nil {
		c = &count{done: make(chan struct{})}
		k.counts[db.Name] = c
	}
	k.mu.Unlock()
	k.end(c, n, nil)
}

// end ends a count with a number or an error, unless it has ended.
func (k *Keyspace) end(c *count, n command.Count, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.over() {
		return
	}
	if c.err = err; err == nil {
		n.Exact = true
		c.n = n
	}
	close(c.done)
}

// estimate sets an estimate. It returns false if the count has ended.
func (k *Keyspace) estimate(c *count, n command.Count) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.over() {
		return false
	}
	c.n = n
	return true
}

// current returns the count as it is now.
func (k *Keyspace) current(c *count) command.Count {
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.n
}

// Count returns the number of keys, an estimate until all were counted. The first call begins to count.
func (k *Keyspace) Count(db command.Database) (n command.Count) {
	c := k.counting(db, false)
	for i := 0; i < maxWaits && n.Keys == 0 && !n.Exact; i++ {
		c.wait(k.ctx, firstWait)
		n = k.current(c)
	}
	return n
}

// Exact returns the number of keys. It waits until they are counted; where that takes long, it returns an error, and the
// count goes on.
func (k *Keyspace) Exact(ctx context.Context, db command.Database) (command.Count, error) {
	c := k.counting(db, true)
	c.wait(ctx, k.patience)
	switch {
	case c.over():
		return k.current(c), c.err
	case ctx.Err() != nil:
		return command.Count{}, context.Cause(ctx)
	}
	return command.Count{}, argument.Refuse(fmt.Sprintf("LOADING kvferry is counting the keys, about %d: ask again", k.current(c).Keys))
}

// count reads the keys of a database, again if its tables had to be sorted first.
func (k *Keyspace) count(db command.Database, c *count) {
	defer k.wg.Done()
	n, err := k.countSpans(db, c)
	if order := (*command.UnorderedError)(nil); errors.As(err, &order) {
		if err = order.Sort(); err == nil {
			n, err = k.countSpans(db, c)
		}
	}
	k.end(c, n, err)
}

// errOver ends the counting of keys whose number has become known.
var errOver = errors.New("the keys are counted")

func (k *Keyspace) countSpans(db command.Database, c *count) (total command.Count, err error) {
	scan := k.scan.Load()
	spans, err := scan.Source.Split(db.Name, scan.Types(db.Name), countSpans)
	if block := (*store.BlockError)(nil); errors.As(err, &block) {
		spans, err = []format.Span{{}}, nil
	}
	for i := 0; err == nil && i < len(spans); i++ {
		if err = k.countSpan(db, spans[i], &total, c); err == nil {
			all, done := int64(len(spans)), int64(i+1)
			k.estimate(c, command.Count{Keys: total.Keys * all / done, Expires: total.Expires * all / done})
		}
	}
	return total, k.explained(err)
}

// countAtLeast is the number of keys between updates of an estimate that is too low.
const countAtLeast = 1024

func (k *Keyspace) countSpan(db command.Database, span format.Span, total *command.Count, c *count) (err error) {
	s, err := k.keys(k.ctx, db, span)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for {
		h, err := s.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		total.Keys++
		total.Expires += command.Number(h.ExpireMS != 0)
		if total.Keys == 1 || total.Keys%countAtLeast == 0 {
			n := k.current(c)
			if !k.estimate(c, command.Count{Keys: max(n.Keys, total.Keys), Expires: max(n.Expires, total.Expires)}) {
				return errOver
			}
		}
	}
}

// firstWait is how long INFO waits for an exact number of keys, and up to maxWaits times as long for the first key: 0 means
// an empty database. countWait is how long DBSIZE waits.
const (
	firstWait = 500 * time.Millisecond
	maxWaits  = 10
	countWait = 10 * time.Second
)

// wait waits for the end of a count.
func (c *count) wait(ctx context.Context, most time.Duration) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-t.C:
	}
}
