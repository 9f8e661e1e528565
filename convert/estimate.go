package convert

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/transfer"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/store"
)

// estimator converts a sample.
type estimator struct {
	*attempt // of the sample
	sample   *plan.Sample
	of       *attempt
	took     []time.Duration // by task
	usage    *disk.Usage
	final    int64 // bytes of the sample's target
	finish   time.Duration
	prove    time.Duration
}

// estimate converts about budget bytes of the source in a temporary directory. It also returns the results of the
// sample's tasks. create makes the stores.
func (a *attempt) estimate(ctx context.Context, create store.CreateFunc, dir string, budget int64,
	prove bool) (_ *Estimate, results []*result.Result, err error) {
	s, err := plan.TakeSample(a.src, a.id.Plan, budget)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(disk.Mkdir(dir), disk.Mkdir(filepath.Join(dir, "tmp"))); err != nil {
		return nil, nil, err
	}
	defer closing(&err, func() error { return disk.RemoveAll(dir) })
	e := a.estimator(s, create, dir)
	if prove { // a dry run, of which this is a step
		a.meter.Begin("sample", s.Bytes, 0, len(s.Tasks))
		a.meter.Doing("converts a part of the source")
	}
	e.usage = disk.Watch(e.work.Spools())
	defer e.usage.Stop()
	if err := e.convert(ctx, prove && !a.o.NoProve); err != nil {
		return nil, nil, err
	}
	return e.result(), e.results, nil
}

// estimator prepares an attempt of its own for the sample.
func (a *attempt) estimator(s *plan.Sample, create store.CreateFunc, dir string) *estimator {
	o := *a.o
	o.Target.Create = create
	plan := *a.id.Plan
	plan.Tasks = s.Tasks
	id := *a.id
	id.Plan = &plan
	r := &run{o: &o, work: &work.Dir{Target: filepath.Join(dir, "target"), Path: dir}}
	x := &attempt{run: r, id: &id, src: a.src, refused: new(atomic.Bool), results: make([]*result.Result, len(s.Tasks))}
	x.cores = pass.NewCores(o.Workers)
	rules := *a.rules
	rules.TempDir, rules.Meter, rules.Renames, rules.NewNames = x.work.Spools(), nil, nil, false
	rules.Refused, rules.Allows = x.refused, func(string) bool { return true }
	_, sectioned := format.As[format.Sectioned](a.src)
	rules.SortSections = sectioned && !plan.AnyOrder
	// The memory of a task shrinks with its size, so that it spills like a task of the plan.
	rules.Memory = pass.NewShares(o.Memory/4, a.id.Plan.Tasks, o.Workers)
	x.rules = &rules
	return &estimator{attempt: x, sample: s, of: a, took: make([]time.Duration, len(s.Tasks))}
}

// convert converts the sample and reads the result back.
func (e *estimator) convert(ctx context.Context, prove bool) (err error) {
	if e.target, err = e.create(ctx, e.id.Plan.TargetDBs); err != nil {
		return err
	}
	if err := pass.Run(ctx, e.sample.Tasks, e.cores, e.o.shared(), e.task); err != nil {
		e.target.Abort()
		return err
	}
	began := time.Now()
	back, err := e.target.Finish(ctx)
	if err != nil {
		return err
	}
	if back != nil {
		defer closing(&err, back.Close)
	}
	files, err := work.List(e.work.Data())
	if err != nil {
		return err
	}
	for _, f := range files {
		e.final += f.Size
	}
	e.finish = time.Since(began)
	if !prove || back == nil {
		return nil
	}
	t, err := result.Sum(e.results)
	if err != nil {
		return err
	}
	e.of.meter.Doing("compares the copy with the source")
	began = time.Now()
	_, err = e.attempt.prove(ctx, back, &t.Fingerprint, t.Findings.List())
	e.prove = time.Since(began)
	return err
}

// task converts one span.
func (e *estimator) task(ctx context.Context, t *pass.Task) error {
	began := time.Now()
	res, err := transfer.Run(ctx, t, e.rules, e.src, e.target, true)
	if err != nil {
		return err
	}
	if t.Group != 0 {
		if res.Tables, err = e.target.Tables(t.N); err != nil {
			return err
		}
	}
	e.results[t.N], e.took[t.N] = res, time.Since(began)
	// The counts of the sample are not those of the run: only its size is shown.
	gauge := e.of.meter.Gauge(t.Bytes)
	gauge.Finish()
	return nil
}

// result extrapolates from the sample to the whole source.
func (e *estimator) result() *Estimate {
	out := &Estimate{SampleBytes: e.sample.Bytes, SourceBytes: e.of.id.Plan.Bytes}
	var tables, made, work, took float64
	for i := range e.sample.Tasks {
		weight, size := e.sample.Weights[i], float64(tableBytes(e.results[i]))
		made += size
		tables += weight * size
		took += e.took[i].Seconds()
		work += weight * e.took[i].Seconds()
	}
	overhead := max(float64(e.final)-made, 0)
	if e.o.SST { // links to the tables
		overhead = max(overhead-made, 0)
	}
	out.DiskBytes = int64(tables + overhead)
	out.TargetBytes = out.DiskBytes
	if e.o.SST {
		out.TargetBytes += int64(tables)
	}
	if e.o.inFile() { // sections, which are joined at the end
		out.DiskBytes += int64(tables)
	}
	plan, sampled := e.of.id.Plan.Tasks, e.sample.Tasks
	out.Run = work / float64(max(min(e.o.Workers, len(plan)), 1))
	if took > 0 && e.sample.Bytes > 0 {
		idle := float64(max(min(e.o.Workers, len(sampled)), 1)) / float64(max(min(e.o.Workers, len(plan)), 1))
		out.Prove = e.prove.Seconds() * idle * work / took
	}
	out.Finish = e.finish.Seconds()
	if e.final > 0 && e.o.inFile() { // joining sections copies them
		out.Finish = out.Finish * float64(out.TargetBytes) / float64(e.final)
	}
	out.Seconds = out.Run + out.Finish + out.Prove
	out.TempBytes = e.usage.Peak()
	if few := atOnce(sampled, e.o.Workers); !e.sample.Whole && few > 0 {
		out.TempBytes = int64(float64(out.TempBytes) * max(atOnce(plan, e.o.Workers)/few, 1))
	}
	return out
}

func tableBytes(r *result.Result) (n int64) {
	for i := range r.Tables {
		n += r.Tables[i].Bytes
	}
	return n
}

// atOnce is the size of the largest tasks that can run in parallel.
func atOnce(tasks []pass.Task, atMost int) float64 {
	var n int64
	for i, t := range pass.LargestFirst(tasks) {
		if i < atMost {
			n += t.Bytes
		}
	}
	return float64(n)
}
