package pace

import (
	"context"
	"errors"
	"testing"
)

// TestRate: a cancelled transfer does not wait for its rate.
func TestRate(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	l := Limiter{Rate: 1}
	if err := l.Wait(ctx, 1<<20); err != nil { // the next one waits
		t.Fatal(err)
	}
	cancel()
	if err := l.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := new(Limiter).Wait(ctx, 1<<40); err != nil {
		t.Error(err)
	}
}
