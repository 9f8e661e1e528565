package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Check repeats a conversion without writing, and compares the records that it would write with those of a target that
// exists. The report has the fingerprint and the losses of the repetition, allowed or not. If the target differs, Check
// returns the report with a *ProofError. The target must be on disk; with live, a process may have it open.
func Check(ctx context.Context, opts *Options, live bool) (*Report, error) {
	o, err := opts.normalize()
	if err != nil {
		return nil, err
	}
	if o.onServer() {
		return nil, errors.New("a server is not compared with the report of a conversion")
	}
	o.NoProve = false
	return o.rehearse(ctx, slices.Concat(planning, counting, []phase{{name: "proved", step: "prove", weight: 1, sized: true,
		run: func(a *attempt, ctx context.Context) error { return a.check(ctx, live) }}}))
}

// check compares the records of the source with a target.
func (a *attempt) check(ctx context.Context, live bool) (err error) {
	t, err := a.sum()
	if err != nil {
		return err
	}
	if err := t.Ledger.Check(); err != nil {
		return fmt.Errorf("the rows read do not add up: %w", err)
	}
	rep := a.report(t)
	rep.Timings.Run = a.timings.Run
	how := a.reopen()
	how.Options.AllowLive, how.Options.Own = live, false // servers may have rewritten it
	if a.back, err = a.o.Target.Format.Open(ctx, a.o.Target.Path, how); err != nil {
		return err
	}
	a.rep = rep
	_, err = a.prove(ctx, a.back, &t.Fingerprint, t.Findings.List())
	return err
}
