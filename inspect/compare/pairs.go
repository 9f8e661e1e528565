package compare

import (
	"context"
	"errors"
	"fmt"

	"kvferry/inspect"
	"kvferry/record"
)

// cursor reads a dataset in key order.
type cursor interface {
	// next moves to the next record if the current one has been consumed.
	next() error
	// first returns the header of the current record, or nil at the end.
	first() *record.Header
	close() error
}

// merge opens both sides of a database and calls step until both are consumed. c tells step which heads to consume:
// a's if negative, b's if positive, both if 0; then they have the same key and type.
func merge[C cursor](ctx context.Context, d *differ, p dbPair, open func(context.Context, *inspect.Scan, string, record.TypeSet,
	bool) (C, error), step func(c int, a, b C) error) (err error) {
	a, err := open(ctx, d.a, p.A, p.both, p.InA)
	if err != nil {
		return fmt.Errorf("first dataset: %w", err)
	}
	defer func() { err = errors.Join(err, a.close()) }()
	b, err := open(ctx, d.b, p.B, p.both, p.InB)
	if err != nil {
		return fmt.Errorf("second dataset: %w", err)
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for n := 0; ; n++ {
		if err := record.Stopped(ctx, n); err != nil {
			return err
		}
		if err := errors.Join(a.next(), b.next()); err != nil {
			return err
		}
		if a.first() == nil && b.first() == nil {
			return nil
		}
		if err := step(smaller(a.first(), b.first()), a, b); err != nil {
			return err
		}
	}
}

// smaller compares two heads; a missing head sorts last.
func smaller(a, b *record.Header) int {
	switch {
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return record.Compare(a, b)
}
