package convert

import (
	"context"
	"errors"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// Shared is a source that others read, too. It was opened without Salvage and Resort: a Feeder that meets an unreadable
// part, or tables out of order, opens the dataset again.
type Shared struct {
	Source  format.Source // stays open
	Sources *disk.Sources // its files
	found   result.Stored
}

// Report collects a finding of the source's stores, so that a Feeder takes it for its own.
func (s *Shared) Report(f record.Finding) { s.found.Report(f) }

// Feeder converts a dataset into streams, any number of times. It publishes no files and keeps the source open between
// the passes.
type Feeder struct {
	o      *Options
	open   *attempt // has the source
	shared *Shared  // the source of open; nil if open owns it
	fits   bool     // a pass has read all of the source
}

// NewFeeder returns a Feeder of a shared source, or opens the source if shared is nil. The options about the target and
// the work directory have no effect.
func NewFeeder(ctx context.Context, opts *Options, shared *Shared) (_ *Feeder, err error) {
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
	f := &Feeder{o: o, shared: shared}
	w := &work.Dir{Path: dir}
	if err = disk.Mkdir(w.Spools()); err == nil {
		f.open, err = f.source(ctx, w, "")
	}
	if err != nil {
		return nil, errors.Join(err, disk.RemoveAll(dir))
	}
	return f, nil
}

// source returns an attempt that has the shared source, or opens the source. resort is set if its tables must be sorted.
func (f *Feeder) source(ctx context.Context, w *work.Dir, resort string) (*attempt, error) {
	r := &run{o: f.o, work: w, began: time.Now(), meter: progress.Start(f.o.steps(reading), f.o.Progress)}
	defer r.meter.Close()
	a := r.attempt(new(work.State), resort)
	if f.shared != nil {
		a.src = f.shared.Source
		return a, nil
	}
	return a, a.do(ctx, starting)
}

// release closes the source unless it is shared.
func (f *Feeder) release() error {
	if f.shared != nil {
		return nil
	}
	return f.open.src.Close()
}

// Close closes the source unless it is shared.
func (f *Feeder) Close() error {
	return errors.Join(f.release(), disk.RemoveAll(f.open.work.Path))
}

// Pass reads the source and writes its records, or its function libraries alone, to a new target of a format. Losses that
// are not allowed are an error before the target is finished. Until a pass has read all records, each must be alone: it may
// have to open the source in another way.
func (f *Feeder) Pass(ctx context.Context, to format.Format, workers int, libraries bool) (*Report, error) {
	for {
		rep, err := f.pass(ctx, to, workers, libraries)
		resort, other := f.otherwise(err)
		switch {
		case other:
		case err == nil && !f.fits:
			f.fits = !libraries
			fallthrough
		default:
			return rep, err
		}
		if err := f.reopen(ctx, resort); err != nil {
			return nil, err
		}
	}
}

// reopen opens the source again. If that fails, the Feeder keeps its source: others may still pass or close it.
func (f *Feeder) reopen(ctx context.Context, resort string) error {
	old := *f
	f.shared = nil
	open, err := f.source(ctx, f.open.work, resort)
	if err != nil {
		f.shared = old.shared
		return err
	}
	f.open = open
	return old.release()
}

// otherwise reports whether a pass can succeed with a source that is opened in another way: with sorted tables, or with
// Salvage, which a shared source lacks.
func (f *Feeder) otherwise(err error) (resort string, other bool) {
	var order *store.OrderError
	var block *store.BlockError
	switch {
	case f.fits: // a later error must not begin the target again
		return "", false
	case errors.As(err, &order) && f.open.resort == "":
		return order.Error(), true
	}
	return f.open.resort, f.shared != nil && errors.As(err, &block)
}

func (f *Feeder) pass(ctx context.Context, to format.Format, workers int, libraries bool) (_ *Report, err error) {
	defer func() { err = f.files().Err(err) }()
	a := f.attempt(to, workers, libraries)
	defer a.meter.Close()
	defer a.abort()
	if err := a.identify(ctx); err != nil {
		return nil, err
	}
	f.tell()
	var nothing *plan.NothingError
	if err := a.plan(ctx); errors.As(err, &nothing) && a.target != nil {
		a.id.Plan = new(plan.Plan) // an empty stream is one, too
	} else if err != nil {
		return nil, err
	}
	if a.o.Rename {
		if err := a.findRenames(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.runTasks(ctx, "convert", true); err != nil {
		return nil, err
	}
	f.tell()
	t, err := a.sum()
	if err != nil {
		return nil, err
	}
	rep := a.report(t)
	if err := a.mayPublish(t, rep.Losses); err != nil && !errors.As(err, &nothing) {
		return rep, err
	}
	_, err = a.target.Finish(ctx)
	return rep, err
}

// files returns the files that the source reads.
func (f *Feeder) files() *disk.Sources {
	if f.shared != nil {
		return f.shared.Sources
	}
	return &f.open.sources
}

// tell adds the findings of a shared source's stores so far.
func (f *Feeder) tell() {
	if f.shared != nil {
		f.shared.found.Tell(f.open.stores.Report)
	}
}

// attempt returns the attempt of a pass.
func (f *Feeder) attempt(to format.Format, workers int, libraries bool) *attempt {
	o := *f.o
	if libraries {
		sel := *o.Selection
		sel.Types, sel.Where = record.Of(record.Other), func(h *record.Header) bool { return h.Keyless == record.Library }
		o.Selection, o.Rename = &sel, false
	}
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
