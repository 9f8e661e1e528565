package convert

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvferry/internal/pass/progress"
)

// Check repeats a conversion without writing, and compares the records that it would write with those of a target that
// exists. The report has the fingerprint and the losses of the repetition, allowed or not. If the target differs, Check
// returns the report with a *ProofError. The target must be on disk; with live, a process may have it open.
func Check(ctx context.Context, opts *Options, live bool) (*Report, error) {
	o, err := opts.normalize()
	if err != nil {
		return nil, err
	}
	if o.Target.Address != "" {
		return nil, errors.New("a server is not compared with the report of a conversion")
	}
	o.NoProve = false
	return o.rehearse(o.checkSteps(), func(a *attempt) (*Report, error) { return a.check(ctx, live) })
}

// checkSteps lists the steps of a check.
func (o *Options) checkSteps() []progress.Step {
	steps := o.drySteps()
	return append(steps[:len(steps)-1], progress.Step{Name: "prove", Weight: 1})
}

// check reads the source as a conversion does, and then the target.
func (a *attempt) check(ctx context.Context, live bool) (rep *Report, err error) {
	defer func() { err = a.sources.Err(err) }()
	end, err := a.beginDry(ctx)
	if err != nil {
		return nil, err
	}
	defer closing(&err, end)
	start := time.Now()
	if err := a.runTasks(ctx, "read", false); err != nil {
		return nil, err
	}
	t, err := a.sum()
	if err != nil {
		return nil, err
	}
	rep = a.report(t)
	rep.Timings.Run = time.Since(start).Seconds()
	if err := t.Ledger.Check(); err != nil {
		return nil, fmt.Errorf("the rows read do not add up: %w", err)
	}
	how := a.reopen()
	how.Options.AllowLive = live
	back, err := a.o.Target.Format.Open(ctx, a.o.Target.Path, how)
	if err != nil {
		return nil, err
	}
	defer closing(&err, back.Close)
	return rep, a.prove(ctx, back, &t.Fingerprint)
}
