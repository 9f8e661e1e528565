package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"kvferry/format"
	"kvferry/internal/filter"
	"kvferry/record"
	"kvferry/store"
)

// run is one conversion on its way.
type run struct {
	o     *Options
	work  *work
	state *journaled // what an earlier process did
	meter *meter
	began time.Time

	id      *identity
	rules   *rules
	src     format.Source
	target  format.Target
	stores  *storeFindings // what the stores of the source report
	refused *atomic.Bool
	results []*taskResult
	timings Timings
}

// Run converts a dataset. The target's path exists afterwards only when it is complete and proved.
// A *LossError lists what the target cannot hold, a *ProofError what it does not, an *UnfinishedError tells
// what is left of a run that began to work.
func Run(ctx context.Context, opts *Options) (*Report, error) {
	o, err := opts.normalize()
	if err != nil {
		return nil, err
	}
	if rep, done, err := concludeEarlier(o); done || err != nil {
		return rep, err
	}
	if err := o.checkPaths(); err != nil {
		return nil, err
	}
	w, state, err := openWork(o.Target.Path, o.TempDir, o.Resume)
	if err != nil {
		return nil, err
	}
	r := &run{o: o, work: w, state: state, began: time.Now(), meter: startMeter(o.Progress)}
	rep, err := r.all(ctx)
	r.meter.close()
	if err != nil {
		return rep, r.giveUp(err)
	}
	return rep, nil
}

// concludeEarlier ends a run that died after it had published its target.
func concludeEarlier(o *Options) (*Report, bool, error) {
	if !o.Resume {
		return nil, false, nil
	}
	if _, err := os.Stat(workDir(o.Target.Path)); err != nil {
		return nil, false, nil
	}
	w, state, err := openWork(o.Target.Path, "", true)
	if err != nil {
		return nil, false, err
	}
	if !w.concluded(state) {
		return nil, false, w.close()
	}
	earlier, err := w.conclude()
	if err != nil {
		return nil, true, err
	}
	rep, err := ReadReport(ReportPath(o.Target.Path))
	if err != nil {
		return nil, true, err
	}
	rep.Earlier = earlier
	return rep, true, nil
}

// giveUp ends a failed run. It leaves nothing, unless there is something to resume.
func (r *run) giveUp(cause error) *UnfinishedError {
	var proof *ProofError
	resumable := r.o.Resume && !errors.As(cause, &proof) && r.work.lines > 0
	if resumable {
		return &UnfinishedError{Dir: r.work.dir, Resume: true, Kept: true, Err: errors.Join(cause, r.work.close())}
	}
	if r.target != nil {
		r.target.Abort()
	}
	return &UnfinishedError{Dir: r.work.dir, Resume: r.o.Resume, Err: errors.Join(cause, r.work.discard())}
}

// UnfinishedError says why a run ended before its target was there, and what is left of it.
type UnfinishedError struct {
	Dir    string // in which it worked
	Resume bool   // it was to be kept
	Kept   bool   // it was, and can be continued; otherwise Dir is gone
	Err    error
}

// Error returns the cause, and where to go on.
func (e *UnfinishedError) Error() string {
	var cannot *resumeError
	text := e.Err.Error()
	if isFull(e.Err) {
		text = fullText(e.Err)
	}
	switch {
	case e.Kept && !errors.As(e.Err, &cannot):
		text += fmt.Sprintf("; what is done is kept in %s, --resume continues it", e.Dir)
	case isFull(e.Err):
		text += "; nothing is left of this conversion"
	}
	return text
}

// isFull reports whether an error is that a disk has no room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// fullText says which disk has no room, and what to do. What was being written does not matter to anybody.
func fullText(err error) string {
	text := err.Error()
	var p *fs.PathError
	if errors.As(err, &p) && isFull(p) {
		text = p.Error()
	}
	return text + "; make room on its disk, or use another: the target lies, while it is made, where it is to be, and --temp-dir names a place for temporary files"
}

// Unwrap returns the cause.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// resumeError says why an unfinished run is not continued by this one, and what to do.
type resumeError struct {
	dir string
	err error
}

func (e *resumeError) Error() string {
	return fmt.Sprintf("%s: cannot be resumed: %v; remove that directory to start over", e.dir, e.err)
}

func (e *resumeError) Unwrap() error { return e.err }

// all runs the phases, over again with the tables sorted when they turn out not to be.
func (r *run) all(ctx context.Context) (*Report, error) {
	resort := ""
	if r.state.id != nil {
		resort = r.state.id.Resort
	}
	rep, err := r.attempt(ctx, resort)
	var order *store.OrderError
	if resort != "" || !errors.As(err, &order) {
		return rep, err
	}
	if r.target != nil {
		r.target.Abort()
		r.target = nil
	}
	if err := r.work.clear(); err != nil {
		return nil, err
	}
	r.state = new(journaled)
	return r.attempt(ctx, order.Error())
}

// attempt runs the phases once.
func (r *run) attempt(ctx context.Context, resort string) (rep *Report, err error) {
	if err := r.openSource(ctx, resort); err != nil {
		return nil, err
	}
	defer closing(&err, r.src.Close)
	if err := r.identify(); err != nil {
		return nil, err
	}
	r.setRules()
	back, err := r.write(ctx, resort)
	if err != nil {
		return nil, err
	}
	if back != nil {
		defer closing(&err, back.Close)
	}
	return r.conclude(ctx, back)
}

// openSource opens the source, with its tables sorted when resort says that they are not.
func (r *run) openSource(ctx context.Context, resort string) (err error) {
	r.stores, r.refused = &storeFindings{onLoss: r.refuse}, new(atomic.Bool)
	if r.src, err = r.o.open(ctx, resort != "", r.stores.report); err != nil {
		return err
	}
	if resort != "" {
		r.stores.report(record.Finding{Kind: "key-order", Severity: record.Warning, Detail: resort})
	}
	return nil
}

// refuse notes that there is a loss of a kind: unless it is allowed, tasks only count from then on.
func (r *run) refuse(kind string) {
	if !r.o.allows(kind) {
		r.refused.Store(true)
	}
}

// identify says what this run is, and refuses to continue another one.
func (r *run) identify() error {
	if was := r.state.id; was != nil && !r.o.NowGiven {
		r.o.Now = was.Now
	}
	if err := r.o.checkSelection(); err != nil {
		return err
	}
	id, err := newIdentity(r.o)
	if err != nil {
		return err
	}
	if was := r.state.id; was != nil {
		if err := was.continues(id); err != nil {
			return &resumeError{r.work.dir, err}
		}
		id = was
	}
	r.id = id
	return nil
}

// setRules fixes what all tasks go by.
func (r *run) setRules() {
	r.rules = &rules{
		now:       r.o.Now,
		selection: r.o.Selection,
		sameName:  r.o.Target.Format.Limits().SameName,
		prefer:    r.o.Prefer,
		tempDir:   r.work.tmp(),
		meter:     r.meter,
		refused:   r.refused,
		allows:    r.o.allows,
	}
}

// write makes the target's files, or finds them made, and returns them reopened.
func (r *run) write(ctx context.Context, resort string) (format.Source, error) {
	r.timings.Resumed = r.state.id != nil
	if r.state.written {
		r.results = r.state.tasks
		r.stores.journaled(r.state.tasks)
		return r.o.Target.Format.Open(ctx, r.work.data(), r.reopen())
	}
	if err := r.restore(); err != nil {
		return nil, err
	}
	if err := r.begin(ctx, resort); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := r.runTasks(ctx, true); err != nil {
		return nil, err
	}
	r.timings.Run = time.Since(start).Seconds()
	t, err := r.sum()
	if err != nil {
		return nil, err
	}
	if err := r.judge(t, t.losses.list()); err != nil {
		return nil, err
	}
	return r.finish(ctx)
}

// restore brings the tables back that an earlier process was making a database of.
func (r *run) restore() error {
	restored, err := r.work.restore()
	if err != nil || restored || !r.state.finishing {
		return err
	}
	r.state = new(journaled)
	return r.work.clear()
}

// begin creates the target, plans, and writes the first line of the journal.
func (r *run) begin(ctx context.Context, resort string) error {
	var err error
	if r.state.id != nil {
		if r.target, err = r.create(ctx, r.id.Plan.TargetDBs); err != nil {
			return err
		}
		return r.adopt()
	}
	// A process that died before its first line may have left an empty target.
	if err := os.RemoveAll(r.work.data()); err != nil {
		return err
	}
	if err := r.plan(ctx); err != nil {
		return err
	}
	r.id.Resort = resort
	r.o.crash("planned")
	return r.work.append(entry{Plan: r.id})
}

// plan creates the target and plans what goes into it. Where databases are found by their rows, what cannot be read
// may be all of one, or of the source: that is a loss and no wrong selection.
func (r *run) plan(ctx context.Context) error {
	err := r.planReadable(ctx)
	var nothing *nothingError
	var none *filter.NoDatabaseError
	if !errors.As(err, &nothing) && !errors.As(err, &none) {
		return err
	}
	lost := r.stores.passedOver()
	if len(lost) == 0 {
		return err
	}
	if loss := judge(lost, r.o); loss != nil && none == nil {
		return loss
	}
	return fmt.Errorf("%w; there is what cannot be read: %s", err, lost[0].Samples[0].Detail)
}

// planReadable is plan for what can be read.
func (r *run) planReadable(ctx context.Context) error {
	dbs, err := r.o.Selection.SelectDBs(r.src.Databases())
	if err != nil {
		return err
	}
	flat := targetLayout(r.o, r.src, dbs) == format.LayoutFlat
	names := targetNames(dbs, r.o.Target.Format.Limits().Numbered, flat)
	if r.target, err = r.create(ctx, names); err != nil {
		return err
	}
	r.id.Plan, err = NewPlan(r.src, dbs, names, r.target.Groups(), &r.o.Selection.Filter)
	return err
}

// create starts the target in the work directory.
func (r *run) create(ctx context.Context, dbs []string) (format.Target, error) {
	return r.o.Target.Format.Create(ctx, r.work.data(), &format.CreateOptions{
		Create:  r.o.Target.Create,
		Kind:    r.o.Target.Store,
		Build:   store.BuildOptions{Sync: true},
		Layout:  targetLayout(r.o, r.src, dbs),
		DBs:     dbs,
		Version: r.o.Version,
		Memory:  r.o.Memory / 4,
		TempDir: r.work.tmp(),
		Now:     r.o.Now,
		Reopen:  r.reopen(),
	})
}

func (r *run) reopen() *format.OpenOptions {
	return &format.OpenOptions{
		Store:   r.o.Target.Open,
		Kind:    r.o.Target.Store,
		Options: store.Options{Memory: r.o.storeMemory(), TempDir: r.work.tmp()},
	}
}

// targetLayout is the one asked for, or that of the source. Several databases that another format
// had in one directory get one each.
func targetLayout(o *Options, src format.Source, dbs []string) format.Layout {
	if o.Layout != format.LayoutAuto {
		return o.Layout
	}
	if len(dbs) > 1 && src.Layout() == format.LayoutFlat && o.Source.Format.Name() != o.Target.Format.Name() {
		return format.LayoutDB
	}
	return src.Layout()
}

// adopt takes over the tasks that an earlier process finished.
func (r *run) adopt() error {
	r.results = make([]*taskResult, len(r.id.Plan.Tasks))
	r.stores.journaled(r.state.tasks)
	for _, t := range r.state.tasks {
		if t.N < 0 || t.N >= len(r.results) {
			return fmt.Errorf("%s: task %d is not in the plan", r.work.dir, t.N)
		}
		task := &r.id.Plan.Tasks[t.N]
		if task.Group != 0 {
			if err := r.target.Adopt(t.N, task.TargetDB, t.Tables); err != nil {
				return &resumeError{r.work.dir, err}
			}
		}
		r.results[t.N] = t
	}
	return nil
}

// runTasks runs the tasks that are not done yet, or only counts what they would do.
func (r *run) runTasks(ctx context.Context, write bool) error {
	plan := r.id.Plan
	if r.results == nil {
		r.results = make([]*taskResult, len(plan.Tasks))
	}
	var todo []*Task
	var total int64
	for i := range plan.Tasks {
		if r.results[i] == nil {
			todo = append(todo, &plan.Tasks[i])
			total += plan.Tasks[i].Bytes
		}
	}
	if r.o.Rename {
		var err error
		if r.rules.renames, err = r.findRenames(ctx); err != nil {
			return err
		}
	}
	r.rules.memory = newShares(r.o.Memory/4, todo, r.o.Workers)
	r.meter.begin("run", total, len(todo))
	return runPool(ctx, todo, r.o.Workers, func(ctx context.Context, t *Task) error {
		return r.runTask(ctx, t, write)
	})
}

// runTask runs one task and writes it to the journal.
func (r *run) runTask(ctx context.Context, t *Task, write bool) error {
	r.o.crash(fmt.Sprintf("task %d", t.N))
	res, err := runTask(ctx, t, r.rules, r.src, r.target, write)
	if err != nil {
		return err
	}
	r.results[t.N] = res // each task has a place of its own
	if !write || r.rules.refused.Load() {
		return nil
	}
	if t.Group != 0 {
		res.Tables = r.target.Tables(t.N)
	}
	res.Stores = r.stores.unwritten()
	r.o.crash(fmt.Sprintf("written %d", t.N))
	return r.work.append(entry{Task: res})
}

// judge decides from what the tasks saw whether the target may be made. It marks the losses that
// are allowed.
func (r *run) judge(t *totals, losses []LossKind) error {
	if err := judge(losses, r.o); err != nil {
		return err
	}
	if err := t.ledger.Check(); err != nil {
		return fmt.Errorf("the rows read do not add up: %w", err)
	}
	if len(t.fingerprint.Parts()) == 0 && !r.o.Selection.Everything() {
		return fmt.Errorf("nothing to convert: no record of %s passes the filter", r.o.Source.Path)
	}
	return nil
}

// sum adds up what all tasks left. Some findings are losses too.
func (r *run) sum() (*totals, error) {
	t, err := sum(r.results)
	if err != nil {
		return nil, err
	}
	r.stores.tell(t.findings.report)
	t.losses.merge(found(t.findings.list()))
	return t, nil
}

// finish makes the tables a database.
func (r *run) finish(ctx context.Context) (format.Source, error) {
	r.meter.begin("finish", 0, 0)
	start := time.Now()
	r.o.crash("finish")
	if err := r.work.append(entry{Finishing: true}); err != nil {
		return nil, err
	}
	if err := r.work.keep(); err != nil {
		return nil, err
	}
	r.o.crash("kept")
	back, err := r.target.Finish(ctx)
	if err != nil {
		return nil, err
	}
	r.o.crash("finished")
	if err := r.work.append(entry{Written: true}); err != nil {
		return nil, errors.Join(err, closeSource(back))
	}
	if err := os.RemoveAll(r.work.kept()); err != nil {
		return nil, errors.Join(err, closeSource(back))
	}
	r.timings.Finish = time.Since(start).Seconds()
	return back, nil
}

func closeSource(s format.Source) error {
	if s == nil {
		return nil
	}
	return s.Close()
}
