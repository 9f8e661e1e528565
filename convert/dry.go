package convert

import (
	"context"
	"errors"
	"time"

	"kvferry/internal/disk"
	"kvferry/internal/progress"
	"kvferry/store"
)

// DryRun reads the whole source and reports what a conversion would write and lose. It writes
// nothing. The report is there also when the error is a *LossError.
func DryRun(ctx context.Context, opts *Options) (rep *Report, err error) {
	o, err := opts.normalize()
	if err != nil {
		return nil, err
	}
	if err := o.checkPaths(); err != nil {
		return nil, err
	}
	dir, err := disk.MkdirTemp(o.TempDir, "kvferry-")
	if err != nil {
		return nil, err
	}
	defer closing(&err, func() error { return disk.RemoveAll(dir) })
	o.Target.Create = discard
	r := &run{o: o, work: &work{target: o.Target.Path, dir: dir}, began: time.Now(),
		meter: progress.Start(o.steps(false), o.Progress)}
	defer r.meter.Close()
	rep, err = r.attempt(new(journaled), "").dry(ctx)
	var order *store.OrderError
	if errors.As(err, &order) {
		return r.attempt(new(journaled), order.Error()).dry(ctx)
	}
	return rep, err
}

// dry runs the tasks without writing.
func (a *attempt) dry(ctx context.Context) (rep *Report, err error) {
	if err := a.openSource(ctx); err != nil {
		return nil, err
	}
	defer closing(&err, a.src.Close)
	if err := a.identify(); err != nil {
		return nil, err
	}
	a.setRules()
	if err := a.plan(ctx); err != nil {
		return nil, err
	}
	defer a.target.Abort()
	start := time.Now()
	if err := a.runTasks(ctx, false); err != nil {
		return nil, err
	}
	t, err := a.sum()
	if err != nil {
		return nil, err
	}
	rep = a.report(t)
	rep.DryRun, rep.Proof.Why = true, "nothing was written"
	rep.Timings = Timings{Run: time.Since(start).Seconds(), Total: time.Since(a.began).Seconds()}
	return rep, a.judge(t, rep.Losses)
}

// discard is a store.CreateFunc for a target that nothing is written to.
func discard(string, store.BuildOptions) (store.Builder, error) { return nowhere{}, nil }

type nowhere struct{}

func (nowhere) Keyspace(string, store.Comparer) error      { return nil }
func (nowhere) Run(string, int, uint64) (store.Run, error) { return nil, errors.ErrUnsupported }
func (nowhere) Tables(int) ([]store.Table, error)          { return nil, nil }
func (nowhere) Adopt([]store.Table) error                  { return nil }
func (nowhere) Finish() error                              { return errors.ErrUnsupported }
func (nowhere) Abort()                                     {}
