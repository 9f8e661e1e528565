package convert

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/internal/filter"
	"kvferry/record"
	"kvferry/store"
)

// attempt is one pass through the phases. All that a pass learns is in here and nowhere else: a pass that starts
// over begins with none of it.
type attempt struct {
	*run
	resort string     // how the source's tables were found out of order; "" when they were not
	state  *journaled // what an earlier process did

	id      *identity
	rules   *rules
	src     format.Source
	target  format.Target
	stores  *storeFindings // what the stores of the source report
	refused *atomic.Bool
	results []*taskResult // by number of the task; nil for those that are not done
	counter counter       // of what builders make
	made    *census       // of the finished target
	opened  openedStores  // of the finished target
	// reported is the report that is to be published.
	reported []byte
	timings  Timings
	cores    cores
}

// attempt starts a pass.
func (r *run) attempt(state *journaled, resort string) *attempt {
	a := &attempt{run: r, state: state, resort: resort, refused: new(atomic.Bool)}
	a.stores = &storeFindings{onLoss: a.refuse, onError: r.meter.Error}
	return a
}

// abort drops what a pass wrote.
func (a *attempt) abort() {
	if a.target != nil {
		a.target.Abort()
	}
}

// convert goes through the phases. Nothing that could still fail is open when the target is published.
func (a *attempt) convert(ctx context.Context) (*Report, error) {
	rep, err := a.prepare(ctx)
	if err != nil {
		return rep, a.leaves(err)
	}
	rep.Earlier, err = a.publish()
	return rep, err
}

// leaves adds to an error what it leaves on a server.
func (a *attempt) leaves(err error) error {
	if l, ok := a.target.(format.Loaded); ok {
		if text := l.Undo(); text != "" {
			return fmt.Errorf("%w; %s", err, text)
		}
	}
	return err
}

// prepare makes the target and its report ready to be published.
func (a *attempt) prepare(ctx context.Context) (rep *Report, err error) {
	if err := a.openSource(ctx); err != nil {
		return nil, err
	}
	defer closing(&err, a.src.Close)
	if err := a.identify(); err != nil {
		return nil, err
	}
	a.setRules()
	back, err := a.write(ctx)
	if err != nil {
		return nil, err
	}
	if back != nil {
		defer closing(&err, back.Close)
	}
	return a.conclude(ctx, back)
}

// openSource opens the source, with its tables sorted when resort says that they are not.
func (a *attempt) openSource(ctx context.Context) (err error) {
	name, start := a.o.preparation(), time.Now()
	if name != "" {
		a.meter.Enter(name)
	}
	if a.src, err = a.o.open(ctx, a.resort != "", a.stores.report, a.meter); err != nil {
		return err
	}
	if name != "" {
		a.timings.Prepare, a.timings.Preparation = time.Since(start).Seconds(), name
	}
	a.meter.Enter("plan")
	if a.resort != "" {
		a.stores.report(record.Finding{Kind: "key-order", Severity: record.Warning, Detail: a.resort})
	}
	return nil
}

// refuse notes that there is a loss of a kind: unless it is allowed, tasks only count from then on.
func (a *attempt) refuse(kind string) {
	if !a.o.allows(kind) {
		a.refused.Store(true)
	}
}

// identify says what this run is, and refuses to continue another one.
func (a *attempt) identify() error {
	if was := a.state.id; was != nil && !a.o.NowGiven {
		a.o.Now = was.Now
	}
	if err := a.o.checkSelection(); err != nil {
		return err
	}
	id, err := newIdentity(a.o)
	if err != nil {
		return err
	}
	if was := a.state.id; was != nil {
		if err := was.continues(id); err != nil {
			return &resumeError{a.work.dir, err}
		}
		id = was
	}
	a.id = id
	a.cores.all = int32(a.o.Workers)
	return nil
}

// setRules fixes what all tasks go by.
func (a *attempt) setRules() {
	limits := a.o.Target.Format.Limits()
	a.rules = &rules{
		now:       a.o.Now,
		selection: a.o.Selection,
		sameName:  limits.SameName,
		fields:    limits.FieldExpiry,
		groups:    limits.StreamGroups,
		noBlank:   limits.NoBlankStream,
		plainZero: a.o.Target.Address != "" || a.src.Format().Limits().Place == format.OnServer,
		whole:     a.o.Source.Format.Limits().Whole,
		lapse:     newLapse(a.o, a.id.Began),
		prefer:    a.o.Prefer,
		tempDir:   a.work.spools(),
		meter:     a.meter,
		refused:   a.refused,
		allows:    a.o.allows,
	}
}

// write makes the target's files, or finds them made, and returns them reopened.
func (a *attempt) write(ctx context.Context) (format.Source, error) {
	a.timings.Resumed = a.state.id != nil
	if a.state.made != nil && a.o.Target.Address == "" {
		a.results, a.made = a.state.tasks, a.state.made
		a.stores.journaled(a.state.tasks)
		return a.reread(ctx)
	}
	if err := a.restore(); err != nil {
		return nil, err
	}
	if err := a.begin(ctx); err != nil {
		return nil, err
	}
	if err := a.foresee(ctx); err != nil {
		return nil, err
	}
	if err := a.checkSpace(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := a.runTasks(ctx, "run", true); err != nil {
		return nil, err
	}
	a.timings.Run = time.Since(start).Seconds()
	t, err := a.sum()
	if err != nil {
		return nil, err
	}
	if err := a.judge(t, t.losses.list()); err != nil {
		return nil, err
	}
	return a.finish(ctx)
}

// foresee looks for losses and for keys that exist before anything is written to a server, where it would stay: it runs the
// tasks once without writing.
func (a *attempt) foresee(ctx context.Context) error {
	if a.o.Target.Address == "" {
		return nil
	}
	adopted := slices.Clone(a.results)
	if err := a.runTasks(ctx, "count", false); err != nil {
		return err
	}
	t, err := a.sum()
	if err != nil {
		return err
	}
	if err := a.judge(t, t.losses.list()); err != nil {
		return err
	}
	a.results = adopted
	return a.conflicts()
}

// conflicts is an error when keys of a server would be overwritten that must not be.
func (a *attempt) conflicts() error {
	if l, ok := a.target.(format.Loaded); ok {
		return l.Conflicts()
	}
	return nil
}

// restore brings the tables back that an earlier process was making a database of. What is on a server stays there.
func (a *attempt) restore() error {
	if a.o.Target.Address != "" {
		return nil
	}
	restored, err := a.work.restore()
	if err != nil || restored || !a.state.finishing {
		return err
	}
	a.state = new(journaled)
	return a.work.clear()
}

// begin creates the target, plans, and writes the first line of the journal.
func (a *attempt) begin(ctx context.Context) error {
	var err error
	if a.state.id != nil {
		if a.target, err = a.create(ctx, a.id.Plan.TargetDBs); err != nil {
			return err
		}
		return a.adopt()
	}
	// A process that died before its first line may have left an empty target.
	if err := disk.RemoveAll(a.work.data()); err != nil {
		return err
	}
	if err := a.plan(ctx); err != nil {
		return err
	}
	a.id.Resort = a.resort
	if l, ok := a.target.(format.Loaded); ok {
		a.id.Target = l.Earlier()
	}
	a.o.crash("planned")
	return a.work.append(entry{Plan: a.id})
}

// plan creates the target and plans what goes into it. Where databases are found by their rows, what cannot be read
// may be all of one, or of the source: that is a loss and no wrong selection.
func (a *attempt) plan(ctx context.Context) error {
	err := a.planReadable(ctx)
	var nothing *nothingError
	var none *filter.NoDatabaseError
	if !errors.As(err, &nothing) && !errors.As(err, &none) {
		return err
	}
	lost := a.stores.passedOver()
	if len(lost) == 0 {
		return err
	}
	if loss := judge(lost, a.o); loss != nil && none == nil {
		return loss
	}
	return fmt.Errorf("%w; some data is unreadable: %s", err, lost[0].Samples[0].Detail)
}

// planReadable is plan for what can be read.
func (a *attempt) planReadable(ctx context.Context) error {
	dbs, err := a.o.Selection.SelectDBs(a.src.Databases())
	if err != nil {
		return err
	}
	flat := targetLayout(a.o, a.src, dbs) == format.LayoutFlat
	names := targetNames(dbs, a.src.Format().Limits(), a.o.Target.Format.Limits(), flat, a.o.Namespace)
	if a.target, err = a.create(ctx, names); err != nil {
		return err
	}
	a.id.Plan, err = NewPlan(a.src, dbs, names, a.target.Groups(), a.order(), &a.o.Selection.Filter)
	return err
}

// create starts the target in the work directory.
func (a *attempt) create(ctx context.Context, dbs []string) (format.Target, error) {
	return a.o.Target.Format.Create(ctx, a.location(), &format.CreateOptions{
		Create:    a.counter.create(a.named),
		Kind:      a.o.Target.Store,
		Build:     store.BuildOptions{Sync: true, Now: a.o.Now, Identity: a.id.name(), Spare: a.spare()},
		Layout:    targetLayout(a.o, a.src, dbs),
		DBs:       dbs,
		Version:   a.o.Version,
		Instances: a.o.Instances,
		Slots:     a.o.Slots,
		Cluster:   a.o.Cluster,
		SST:       a.o.SST,
		Memory:    a.o.Memory / 4,
		TempDir:   a.work.spools(),
		Now:       a.o.Now,
		Earlier:   a.id.Target,
		Reopen:    a.reopen(),
	})
}

// named starts a store of the target, which gets an identity of its own.
func (a *attempt) named(dir string, o store.BuildOptions) (store.Builder, error) {
	rel, err := filepath.Rel(a.work.data(), dir)
	if err != nil {
		return nil, err
	}
	o.Identity += " " + filepath.ToSlash(rel)
	return a.o.Target.Create(dir, o)
}

// spare lends cores that no worker needs; nil when there is one worker.
func (a *attempt) spare() func(func()) bool {
	if a.o.Workers < 2 {
		return nil
	}
	return a.cores.spare
}

// reread opens a target that an earlier process finished; nil when it is not to be read.
func (a *attempt) reread(ctx context.Context) (format.Source, error) {
	if !a.o.readBack() {
		return nil, nil
	}
	return a.o.Target.Format.Open(ctx, a.location(), a.reopen())
}

// reopen says how the target is opened for the proof; nil: it is not.
func (a *attempt) reopen() *format.OpenOptions {
	if !a.o.readBack() {
		return nil
	}
	return &format.OpenOptions{
		Store:   a.opened.opener(a.o.Target.Open),
		Kind:    a.o.Target.Store,
		Options: store.Options{Memory: a.o.storeMemory(), TempDir: a.work.spools(), Copied: a.meter.Copied},

		MaxBitmap: a.o.MaxBitmap,
	}
}

// targetLayout is the one asked for, or that of the source. Several databases that another format
// had in one directory get one each.
func targetLayout(o *Options, src format.Source, dbs []string) format.Layout {
	if o.Layout != format.LayoutAuto {
		return o.Layout
	}
	if l := o.Target.Format.Limits().Layout; l != format.LayoutAuto {
		return l
	}
	if len(dbs) > 1 && src.Layout() == format.LayoutFlat && o.Source.Format.Name() != o.Target.Format.Name() {
		return format.LayoutDB
	}
	return src.Layout()
}

// adopt takes over the tasks that an earlier process finished, but for those whose rows may be gone.
func (a *attempt) adopt() error {
	a.results = make([]*taskResult, len(a.id.Plan.Tasks))
	a.stores.journaled(a.state.tasks)
	for _, t := range a.state.tasks {
		if t.N < 0 || t.N >= len(a.results) {
			return fmt.Errorf("%s: task %d is not in the plan", a.work.dir, t.N)
		}
		task := &a.id.Plan.Tasks[t.N]
		if task.Group != 0 {
			err := a.target.Adopt(t.N, task.TargetDB, t.Tables)
			if errors.Is(err, format.ErrGone) {
				continue
			}
			if err != nil {
				return &resumeError{a.work.dir, err}
			}
		}
		a.results[t.N] = t
	}
	return nil
}

// runTasks runs the tasks that are not done yet, or only counts what they would do, as a step of the run.
func (a *attempt) runTasks(ctx context.Context, step string, write bool) error {
	plan := a.id.Plan
	if a.results == nil {
		a.results = make([]*taskResult, len(plan.Tasks))
	}
	var todo []*Task
	var total, done int64
	for i := range plan.Tasks {
		total += plan.Tasks[i].Bytes
		if a.results[i] == nil {
			todo = append(todo, &plan.Tasks[i])
		} else {
			done += plan.Tasks[i].Bytes
		}
	}
	if a.o.Rename && a.rules.renames == nil { // they are known when a server's target was looked at before
		var err error
		if a.rules.renames, err = a.findRenames(ctx); err != nil {
			return err
		}
	}
	a.rules.memory = newShares(a.o.Memory/4, todo, a.o.Workers)
	a.meter.Begin(step, total, done, len(todo))
	commits := newCommits(a.o.Workers)
	err := runSharing(ctx, todo, &a.cores, a.o.Memory, func(ctx context.Context, t *Task, sh *share) error {
		return a.runTask(ctx, t, sh, write, commits)
	})
	if e := commits.wait(); err == nil {
		err = e
	}
	return err
}

// runTask runs one task and lets it be written to the journal.
func (a *attempt) runTask(ctx context.Context, t *Task, sh *share, write bool, c *commits) error {
	a.o.crash(fmt.Sprintf("task %d", t.N))
	res, err := runTask(ctx, t, a.rules, a.src, a.target, sh, write)
	if err != nil {
		return err
	}
	a.results[t.N] = res // each task has a place of its own
	if !write {
		return nil
	}
	return c.start(func() error { return a.commit(t, res) })
}

// commit writes a task to the journal when its tables are on disk.
func (a *attempt) commit(t *Task, res *taskResult) (err error) {
	if res.Stores = a.stores.unwritten(); a.rules.refused.Load() {
		return nil
	}
	if t.Group != 0 {
		if res.Tables, err = a.target.Tables(t.N); err != nil {
			return err
		}
	}
	a.o.crash(fmt.Sprintf("written %d", t.N))
	return a.work.append(entry{Task: res})
}

// judge decides from what the tasks saw whether the target may be made. It marks the losses that
// are allowed.
func (a *attempt) judge(t *totals, losses []LossKind) error {
	if err := judge(losses, a.o); err != nil {
		return err
	}
	if err := t.ledger.Check(); err != nil {
		return fmt.Errorf("the rows read do not add up: %w", err)
	}
	if len(t.fingerprint.Parts()) == 0 && !a.o.Selection.Everything() {
		return &nothingError{fmt.Sprintf("no record of %s passes the filter", a.o.Source.Path)}
	}
	return nil
}

// sum adds up what all tasks left. Some findings are losses too.
func (a *attempt) sum() (*totals, error) {
	t, err := sum(a.results)
	if err != nil {
		return nil, err
	}
	a.stores.tell(t.findings.report)
	t.losses.merge(found(t.findings.list()))
	return t, nil
}

// finish makes the tables a database.
func (a *attempt) finish(ctx context.Context) (format.Source, error) {
	a.meter.Enter("finish")
	start := time.Now()
	if err := a.checkTasks(); err != nil {
		return nil, err
	}
	a.o.crash("finish")
	if err := a.work.append(entry{Finishing: true}); err != nil {
		return nil, err
	}
	if err := a.work.keep(); err != nil {
		return nil, err
	}
	a.o.crash("kept")
	if a.o.Target.Address != "" && a.o.Target.Verify {
		a.meter.Enter("fetch")
	}
	back, err := a.target.Finish(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.finished(); err != nil {
		return nil, errors.Join(err, closeSource(back))
	}
	a.timings.Finish = time.Since(start).Seconds()
	return back, nil
}

// finished completes the target's directory and says in the journal what it consists of.
func (a *attempt) finished() (err error) {
	if a.o.Target.Address == "" {
		if err := copyExtra(a.src, a.o.Source.Path, a.work.data()); err != nil {
			return err
		}
	}
	if a.made, err = a.count(); err != nil {
		return err
	}
	a.o.crash("finished")
	if err := a.work.append(entry{Written: a.made}); err != nil {
		return err
	}
	return disk.RemoveAll(a.work.kept())
}

func closeSource(s format.Source) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

// order says what order is asked for: none by a target that takes any, where no names of the source compete for one.
func (a *attempt) order() Order {
	any := a.o.Target.Format.Limits().AnyOrder
	return Order{Any: any && !a.o.Source.Format.Limits().SameName, Pieces: any}
}
