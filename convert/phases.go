package convert

import (
	"context"
	"slices"
	"time"

	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass/progress"
)

// Progress is the state of a running conversion.
type Progress = progress.State

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

// starting are the phases that open the source, and reading those before the first record is read.
var (
	starting = []phase{
		{step: preparation, weight: 0.3},
		{name: "opened", run: (*attempt).openSource},
	}
	reading = slices.Concat(starting, []phase{{name: "identified", step: "plan", weight: 0.01, run: (*attempt).identify}})
)

// conversion is a conversion to its end. The proof reads written data, which is compressed already.
var conversion = slices.Concat([]phase{{undo: (*attempt).abandon}}, reading, []phase{
	{name: "continued", done: (*attempt).unmade, run: (*attempt).takeOver},
	{name: "restored", done: (*attempt).isMade, run: (*attempt).restore},
	{name: "planned", done: (*attempt).isPlanned, run: (*attempt).planNew, entry: (*attempt).planned},
	{name: "adopted", done: (*attempt).isNew, run: (*attempt).takeUp},
	{name: "roomy", done: (*attempt).isMade, run: (*attempt).checkSpace},
	{name: "looked", step: "look", weight: 0.5, sized: true, when: (*Options).renames, done: (*attempt).isMade,
		run: (*attempt).findRenames},
	{name: "counted", step: "count", weight: 0.3, sized: true, when: (*Options).onServer, done: (*attempt).isMade,
		run: (*attempt).foresee},
	{name: "converted", step: "convert", weight: 1, sized: true, done: (*attempt).isMade, run: (*attempt).transfer,
		took: func(t *Timings) *float64 { return &t.Run }},
	{step: "finish", weight: 0.05, when: (*Options).inParts, done: (*attempt).isMade},
	{step: "finish", weight: 0.4, when: (*Options).inFile, done: (*attempt).isMade},
	{name: "finish", done: (*attempt).isMade, run: (*attempt).checkTasks,
		entry: func(*attempt) work.Entry { return work.Entry{Finishing: true} }, took: finishing},
	{name: "kept", done: (*attempt).isMade, run: (*attempt).keep, took: finishing},
	{step: "fetch", weight: 0.3, when: (*Options).fetches, done: (*attempt).isMade},
	{name: "finished", done: (*attempt).isMade, run: (*attempt).finish, entry: (*attempt).written, took: finishing},
	{step: "prove", weight: 0.35, sized: true, when: (*Options).compares},
	{name: "proved", run: (*attempt).conclude, took: func(t *Timings) *float64 { return &t.Prove }},
	{name: "noted", step: "publish", weight: 0.01, run: (*attempt).writeReport,
		entry: func(*attempt) work.Entry { return work.Entry{Proved: true} }},
	{name: "closed", run: (*attempt).leave},
	{name: "publish", when: (*Options).onDisk, run: (*attempt).sync},
	{name: "reported", run: (*attempt).publishReport, undo: (*attempt).withdrawReport},
	{name: "renamed", when: (*Options).onDisk, run: (*attempt).appear},
	{name: "concluded", final: true, run: func(a *attempt, _ context.Context) error { return a.work.Conclude() }},
})

// partial is the work on one part of a plan: its tasks end in a directory of their own.
var partial = slices.Concat([]phase{{undo: (*attempt).abandon}}, reading, []phase{
	{name: "planned", done: (*attempt).isPlanned, run: (*attempt).planNew},
	{name: "shared", done: (*attempt).isPlanned, run: (*attempt).share},
	{name: "noted", run: (*attempt).note},
	{name: "created", done: (*attempt).isNew, run: (*attempt).begin},
	{name: "roomy", run: (*attempt).checkSpace},
	{name: "looked", step: "look", weight: 0.5, sized: true, when: (*Options).renames, run: (*attempt).findRenames},
	{name: "converted", step: "convert", weight: 1, sized: true, run: (*attempt).transfer,
		took: func(t *Timings) *float64 { return &t.Run }},
	{name: "closed", step: "publish", weight: 0.01, run: (*attempt).leave},
	{name: "published", run: (*attempt).publishPart},
})

func finishing(t *Timings) *float64 { return &t.Finish }

// planning are the phases of a conversion that writes nothing, before it reads records; counting are those that
// read all of them.
var (
	planning = append(slices.Clone(reading), phase{name: "planned", run: (*attempt).planTrial})
	counting = []phase{
		{name: "looked", step: "look", weight: 0.5, sized: true, when: (*Options).renames,
			run: (*attempt).findRenames},
		{name: "read", step: "read", weight: 1, sized: true, run: (*attempt).count,
			took: func(t *Timings) *float64 { return &t.Run }},
	}
)

func (o *Options) renames() bool  { return o.Rename && !o.Plan }
func (o *Options) onServer() bool { return o.Target.Address != "" }
func (o *Options) onDisk() bool   { return o.Target.Address == "" }
func (o *Options) inFile() bool   { return o.Target.Format.Limits().Place == format.InFile }
func (o *Options) inParts() bool  { return !o.inFile() }
func (o *Options) fetches() bool  { return o.onServer() && o.Target.Verify }

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

// preparation is the name of the step preparation; "" if the source needs none.
func (o *Options) preparation() string { return o.Source.Format.Limits().Place.Preparation() }

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
