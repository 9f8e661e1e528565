//go:build unix

package work

import (
	"context"
	"testing"

	"kvferry/internal/testkit/durable"
)

// TestDurableBeforeItAppears checks that a job need not sync what it writes.
func TestDurableBeforeItAppears(t *testing.T) {
	r := newRun(t)
	d := durable.Record(t)
	r.part(t, 1, 2)
	r.part(t, 2, 2)
	if _, err := r.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.Check(t, r.Target.Path)
}
