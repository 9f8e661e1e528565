// Package pace limits the speed of transfers, and how many calls run at the same time.
package pace

import (
	"context"
	"sync"
	"time"
)

// Limiter limits the bytes per second of all who share it.
type Limiter struct {
	Rate int64 // bytes per second; 0: no limit
	// Rest waits for a time, or until the context ends; nil: the function Rest.
	Rest func(context.Context, time.Duration) error
	mu   sync.Mutex
	next time.Time
}

// Wait waits until n more bytes may be sent, or the context ends.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	if l.Rate <= 0 {
		return nil
	}
	l.mu.Lock()
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	pause := l.next.Sub(now)
	l.next = l.next.Add(time.Duration(float64(n) / float64(l.Rate) * float64(time.Second)))
	l.mu.Unlock()
	if pause <= 0 {
		return nil
	}
	if l.Rest != nil {
		return l.Rest(ctx, pause)
	}
	return Rest(ctx, pause)
}

// Rest waits for a time, or until the context ends.
func Rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
