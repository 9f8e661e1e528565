package convert

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"kvferry/convert/transfer"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// errOnServer is returned if Options.Estimate is set and the target is a server.
var errOnServer = errors.New("an estimate needs a target on disk: kvferry does not write samples to a server")

// DryRun reads the whole source and reports the records and losses of a conversion, and the space and time it would
// need. With Options.Estimate it reads and counts only a sample. It writes only temporary
// files. It returns the report also with a *LossError.
func DryRun(ctx context.Context, opts *Options) (rep *Report, err error) {
	o, err := opts.normalize()
	if err != nil {
		return nil, err
	}
	if err := o.checkPaths(); err != nil {
		return nil, err
	}
	if o.Estimate && o.onServer() {
		return nil, errOnServer
	}
	if o.uploads() {
		if err := o.Target.Objects.Check(ctx, ""); err != nil {
			return nil, err
		}
	}
	d := &dryRun{create: o.Target.Create, tempDir: o.TempDir}
	defer func() { d.usage.Stop() }()
	return o.rehearse(ctx, d.phases(o))
}

// rehearse runs the phases of an attempt that writes temporary files only. If it finds tables out of order, it starts
// over with sorted ones.
func (o *Options) rehearse(ctx context.Context, phases []phase) (rep *Report, err error) {
	dir, err := disk.MkdirTemp(o.TempDir, "kvferry-")
	if err != nil {
		return nil, err
	}
	defer closing(&err, func() error { return disk.RemoveAll(dir) })
	o.Target.Create, o.TempDir = discard, dir
	r := &run{o: o, work: &work.Dir{Target: o.Target.Path, Path: dir}, began: time.Now(),
		meter: progress.Start(o.steps(phases), o.Progress)}
	defer r.meter.Close()
	if err := disk.Mkdir(r.work.Spools()); err != nil {
		return nil, err
	}
	a := r.attempt(new(work.State), "")
	err = a.try(ctx, phases)
	if order := a.unordered(err); order != nil {
		a = r.attempt(new(work.State), order.Error())
		err = a.try(ctx, phases)
	}
	return a.rep, err
}

// try runs phases and closes source and target.
func (a *attempt) try(ctx context.Context, phases []phase) error {
	err := a.do(ctx, phases)
	a.abort()
	return a.sources.Err(errors.Join(err, a.close()))
}

// dryRun is the state of a dry run beyond its attempt.
type dryRun struct {
	create  store.CreateFunc // of the target
	tempDir string           // of the conversion
	usage   *disk.Usage      // of temporary files
	opened  int64            // bytes of them after the source was opened
	planned time.Duration    // until then
}

// phases returns the phases of a dry run.
func (d *dryRun) phases(o *Options) []phase {
	out := slices.Concat([]phase{{name: "watched", run: d.watch}}, planning,
		[]phase{{name: "begun", run: d.begin}, {name: "back", run: d.wayBack}})
	if !o.Estimate {
		out = append(out, counting...)
	}
	return append(out, phase{name: "sampled", step: "sample", weight: 0.05, sized: true, run: d.sample})
}

// watch begins to measure temporary files.
func (d *dryRun) watch(a *attempt, _ context.Context) error {
	d.usage.Stop()
	d.usage = disk.Watch(a.work.Path)
	return nil
}

// begin records time and temporary files of the preparation.
func (d *dryRun) begin(a *attempt, _ context.Context) error {
	d.planned, d.opened = time.Since(a.began), d.usage.Now()
	d.usage.Reset()
	return nil
}

// sample converts a sample, and makes the report.
func (d *dryRun) sample(a *attempt, ctx context.Context) error {
	est, err := d.estimate(ctx, a)
	if err != nil {
		return err
	}
	t, err := a.sum()
	if err != nil {
		return err
	}
	rep := a.report(t)
	rep.DryRun, rep.Estimate, rep.Proof.Why = true, est, "nothing was written"
	rounded := int64(len(a.id.Plan.Tasks)) // task sizes are rounded down
	rep.Sampled = a.o.Estimate && est.SampleBytes+rounded < est.SourceBytes
	all := time.Since(a.began)
	rep.Timings = Timings{Prepare: a.timings.Prepare, Preparation: a.timings.Preparation, Run: (all - d.planned).Seconds(),
		Total: all.Seconds()}
	if rep.Sampled {
		rep.Unseen = a.unseen(rep)
	}
	a.rep = rep
	if err := a.mayPublish(t, rep.Losses); err != nil {
		return err
	}
	return a.conflicts()
}

// unseen lists the types of the source that do not occur in the sample, neither converted nor lost.
func (a *attempt) unseen(rep *Report) (out []string) {
	seen := map[string]bool{}
	for _, p := range rep.Parts {
		seen[p.Type] = seen[p.Type] || p.Records > 0
	}
	for _, l := range rep.Losses {
		seen[l.Kind] = true // of a type that the target lacks
		for _, s := range l.Samples {
			seen[s.Type] = true
		}
	}
	var types record.TypeSet
	for i := range a.id.Plan.Tasks {
		types |= a.id.Plan.Tasks[i].Types & a.src.Types(a.id.Plan.Tasks[i].DB)
	}
	for _, t := range types.Types() {
		if !seen[t.String()] {
			out = append(out, t.String())
		}
	}
	return out
}

// wayBack makes a plan ask what the way back to the source's format would lose.
func (d *dryRun) wayBack(a *attempt, ctx context.Context) error {
	if !a.o.Plan {
		return nil
	}
	back, err := transfer.NewBack(ctx, a.src, a.id.Plan.DBs, a.id.Plan.TargetDBs, a.o.Target.Format.Limits(),
		filepath.Join(a.work.Path, "back"), format.CreateOptions{Create: discard, TempDir: a.work.Spools(), Now: a.o.Now})
	if err == nil {
		a.rules.Back = back
	}
	return err
}

// estimate predicts the cost of the conversion. It returns nil for a server, because a sample would have to be
// written there. With Options.Estimate the sample's results become the results of the run.
func (d *dryRun) estimate(ctx context.Context, a *attempt) (*Estimate, error) {
	if a.o.onServer() {
		return nil, nil
	}
	est, results, err := a.estimate(ctx, d.create, filepath.Join(a.work.Path, "sample"), a.o.sampleBudget(a.id.Plan.Bytes), true)
	if err != nil {
		return nil, err
	}
	if a.o.Estimate {
		a.results = results
	}
	est.Seconds += d.planned.Seconds()
	est.Prepare = a.timings.Prepare
	est.TempBytes = max(est.TempBytes, d.usage.Peak()-d.opened) + d.opened
	if a.src.Format().Limits().Place == format.InFiles {
		est.TempBytes += a.id.Plan.Bytes // logs are replayed into a state on disk
	}
	o := *a.o
	o.TempDir = d.tempDir
	est.volumes(&o)
	return est, nil
}

// discard is a store.CreateFunc for a target that no row is written to.
func discard(string, store.BuildOptions) (store.Builder, error) { return nowhere{}, nil }

type nowhere struct{}

func (nowhere) Keyspace(string, store.Comparer) error      { return nil }
func (nowhere) Run(string, int, uint64) (store.Run, error) { return nil, errors.ErrUnsupported }
func (nowhere) Tables(int) ([]store.Table, error)          { return nil, nil }
func (nowhere) Adopt([]store.Table) error                  { return nil }
func (nowhere) Finish() error                              { return errors.ErrUnsupported }
func (nowhere) Abort()                                     {}

// sampleBudget returns the size of a sample of a source of n bytes.
func (o *Options) sampleBudget(bytes int64) int64 {
	switch {
	case o.SampleBytes > 0:
		return o.SampleBytes
	case o.SampleEvery > 0:
		return max(bytes/o.SampleEvery, leastBudget)
	}
	return usualBudget(bytes)
}
