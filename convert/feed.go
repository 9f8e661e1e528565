package convert

import (
	"context"
	"errors"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
	"kvferry/store"
)

// Feeder converts a dataset into targets that are streams, any number of times: it publishes nothing, and the source
// stays open between the passes.
type Feeder struct {
	o    *Options
	open *attempt // has opened the source
}

// NewFeeder opens the source of a conversion. The options about the target and the work directory have no effect.
func NewFeeder(ctx context.Context, opts *Options) (_ *Feeder, err error) {
	o, err := opts.normalize()
	if err != nil {
		return nil, err
	}
	if err := CheckTemp(o.Source.Path, o.TempDir); err != nil {
		return nil, err
	}
	dir, err := disk.MkdirTemp(o.TempDir, "kvferry-")
	if err != nil {
		return nil, err
	}
	f := &Feeder{o: o}
	w := &work.Dir{Path: dir}
	if err = disk.Mkdir(w.Spools()); err == nil {
		err = f.reopen(ctx, w, "")
	}
	if err != nil {
		return nil, errors.Join(err, disk.RemoveAll(dir))
	}
	return f, nil
}

// reopen opens the source. resort is set if its tables must be sorted.
func (f *Feeder) reopen(ctx context.Context, w *work.Dir, resort string) error {
	r := &run{o: f.o, work: w, began: time.Now(), meter: progress.Start(f.o.first(), f.o.Progress)}
	defer r.meter.Close()
	f.open = r.attempt(new(work.State), resort)
	return f.open.openSource(ctx)
}

// Close closes the source.
func (f *Feeder) Close() error {
	return errors.Join(f.open.src.Close(), disk.RemoveAll(f.open.work.Path))
}

// Pass reads the source and writes its records to a new target of a format. Losses that are not allowed are an error
// before the target is finished. The first pass must be alone: it may find that tables must be sorted.
func (f *Feeder) Pass(ctx context.Context, to format.Format, workers int) (*Report, error) {
	rep, err := f.pass(ctx, to, workers)
	var order *store.OrderError
	if f.open.resort == "" && errors.As(err, &order) {
		if err := errors.Join(f.open.src.Close(), f.reopen(ctx, f.open.work, order.Error())); err != nil {
			return nil, err
		}
		return f.pass(ctx, to, workers)
	}
	return rep, err
}

func (f *Feeder) pass(ctx context.Context, to format.Format, workers int) (_ *Report, err error) {
	defer func() { err = f.open.sources.Err(err) }()
	a := f.attempt(to, workers)
	defer a.meter.Close()
	if err := a.identify(); err != nil {
		return nil, err
	}
	a.setRules()
	defer a.abort()
	var nothing *plan.NothingError
	if err := a.plan(ctx); errors.As(err, &nothing) && a.target != nil {
		a.id.Plan = new(plan.Plan) // an empty stream is one, too
	} else if err != nil {
		return nil, err
	}
	if err := a.runTasks(ctx, "convert", true); err != nil {
		return nil, err
	}
	t, err := a.sum()
	if err != nil {
		return nil, err
	}
	rep := a.report(t)
	if err := a.judge(t, rep.Losses); err != nil && !errors.As(err, &nothing) {
		return rep, err
	}
	_, err = a.target.Finish(ctx)
	return rep, err
}

// attempt returns the attempt of a pass.
func (f *Feeder) attempt(to format.Format, workers int) *attempt {
	o := *f.o
	o.Target, o.Workers, o.NoProve = Output{Format: to}, max(workers, 1), true
	steps := []progress.Step{{Name: "convert", Weight: 1}}
	if o.Rename {
		steps = append([]progress.Step{{Name: "look", Weight: 0.5}}, steps...)
	}
	r := &run{o: &o, work: f.open.work, began: time.Now(), meter: progress.Start(steps, o.Progress)}
	a := r.attempt(new(work.State), f.open.resort)
	a.src, a.stores = f.open.src, f.open.stores // stores report a finding once, to whichever pass meets it
	return a
}
