package convert

import (
	"context"
	"slices"
	"time"

	"kvferry/convert/work"
	"kvferry/internal/pass/progress"
)

// phase is a part of the work on a source. The steps of progress, the points where tests crash and the lines of
// the journal follow from the tables of phases.
type phase struct {
	// name names the point after the phase, before its line of the journal: a crash there must be safe.
	name string
	// step begins with the phase, or with run, which knows its size, if it is sized. "": the last one goes on. weight is
	// its duration relative to the writing.
	step   string
	weight float64
	sized  bool
	when   func(*Options) bool                   // nil: always
	done   func(*attempt) bool                   // an earlier process did it, or it has nothing to do; nil: no
	run    func(*attempt, context.Context) error // nil: the phase is a step, of which the next phases are parts
	// undo undoes the phase after a later one failed, and returns the error to go on with.
	undo  func(*attempt, error) error
	entry func(*attempt) work.Entry // the line of the journal; nil: none
	took  func(*Timings) *float64   // nil: it is not reported
	final bool                      // nothing is undone if it fails
}

// preparation stands for the step that makes a source readable, if it needs one: copying a server, replaying a log,
// scanning a file.
const preparation = "prepare"

// stepOf returns the step of a phase; "" if it has none.
func (o *Options) stepOf(p *phase) string {
	switch {
	case p.when != nil && !p.when(o):
		return ""
	case p.step == preparation:
		return o.preparation()
	}
	return p.step
}

// steps lists the steps of phases.
func (o *Options) steps(phases []phase) (out []progress.Step) {
	for i := range phases {
		if name := o.stepOf(&phases[i]); name != "" {
			out = append(out, progress.Step{Name: name, Weight: phases[i].weight})
		}
	}
	return out
}

// do runs phases. If one fails, those before it are undone, the last one first.
func (a *attempt) do(ctx context.Context, phases []phase) error {
	for i := range phases {
		p := &phases[i]
		if p.when != nil && !p.when(a.o) || p.done != nil && p.done(a) {
			continue
		}
		err := a.phase(ctx, p)
		if err == nil {
			continue
		}
		for _, p := range slices.Backward(phases[:i]) {
			if p.undo != nil && !phases[i].final {
				err = p.undo(a, err)
			}
		}
		return err
	}
	return nil
}

// phase runs a phase and writes its line of the journal.
func (a *attempt) phase(ctx context.Context, p *phase) error {
	if step := a.o.stepOf(p); step != "" && !p.sized {
		a.meter.Enter(step)
	}
	if p.run == nil {
		return nil
	}
	start := time.Now()
	if err := p.run(a, ctx); err != nil {
		return err
	}
	a.o.crash(p.name)
	if p.entry != nil {
		if err := a.work.Append(p.entry(a)); err != nil {
			return err
		}
	}
	if p.took != nil {
		*p.took(&a.timings) += time.Since(start).Seconds()
	}
	return nil
}
