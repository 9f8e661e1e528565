package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/transfer"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/pace"
	"kvferry/record"
	"kvferry/store"
)

// abandon closes source and target of a failed attempt, and aborts the target unless its work is kept.
func (a *attempt) abandon(err error) error {
	if !a.closed {
		err = a.leaves(a.sources.Err(errors.Join(err, a.close())))
	}
	if a.unordered(err) != nil || !a.resumable(err) {
		a.abort()
	}
	return err
}

// leave closes everything that can still fail before the target is published.
func (a *attempt) leave(context.Context) error {
	err := a.sources.Err(a.close())
	a.closed = true
	if err != nil {
		err = a.leaves(err)
	}
	return err
}

// leaves adds to an error a description of the data left on the server.
func (a *attempt) leaves(err error) error {
	if l, ok := a.target.(format.Loaded); ok {
		if text := l.Undo(); text != "" {
			return fmt.Errorf("%w; %s", err, text)
		}
	}
	return err
}

// openSource opens the source. If resort is set, stores sort its tables.
func (a *attempt) openSource(ctx context.Context) (err error) {
	start := time.Now()
	if a.src, err = a.open(ctx); err != nil {
		return err
	}
	if name := a.o.preparation(); name != "" {
		a.timings.Prepare, a.timings.Preparation = time.Since(start).Seconds(), name
	}
	if a.resort != "" {
		a.stores.Report(record.Finding{Kind: "key-order", Severity: record.Warning, Detail: a.resort})
	}
	return nil
}

func (a *attempt) open(ctx context.Context) (format.Source, error) {
	return a.o.Source.Open(ctx, func(so *store.Options) {
		so.Resort = a.resort != ""
		so.Salvage = true // an unreadable table or block becomes a finding, and so a loss of kind LossDamaged
		so.Memory = a.o.storeMemory()
		so.TempDir, so.Now, so.HalfImported = a.o.TempDir, a.o.Now, a.o.Selection.KeepExpired
		so.Report = a.stores.Report
		so.Sources = &a.sources
		if a.o.preparation() != "" {
			so.Copied = a.meter.Copied
		}
	})
}

// refuse notes a loss. Unless its kind is allowed, tasks only count from then on.
func (a *attempt) refuse(kind string) {
	if !a.o.allows(kind) {
		a.refused.Store(true)
	}
}

// identify computes the run's identity and its rules. If the work directory belongs to another run, it returns a
// *work.ResumeError.
func (a *attempt) identify(context.Context) error {
	a.meter.Doing("divides the source into tasks")
	id, err := a.continues(a.state.ID)
	if err != nil {
		return err
	}
	a.id = id
	a.cores = pass.NewCores(a.o.Workers)
	a.timings.Resumed = a.state.ID != nil
	a.setRules()
	return nil
}

// continues returns the identity of this run; was if that is not nil and this run may continue it, and else a
// *work.ResumeError.
func (r *run) continues(was *work.Identity) (*work.Identity, error) {
	if was != nil && !r.o.NowGiven {
		r.o.Now = was.Now
	}
	if err := r.o.checkSelection(); err != nil {
		return nil, err
	}
	id, err := work.NewIdentity(r.o.Source.Path, r.o.Source.WALDir, optionTexts(r.o), r.o.Now)
	if err != nil {
		return nil, err
	}
	id.Unproved = r.o.NoProve && r.o.onDisk()
	if r.shared != nil {
		id.Parts, id.Tool = r.part.N, r.o.Tool
	}
	if was == nil {
		return id, nil
	}
	if r.finishes() {
		id.Parts = was.Parts
	}
	if err := was.Continues(id); err != nil {
		return nil, &work.ResumeError{Dir: work.Path(r.o.Target.Path), Parts: r.shared != nil, Err: err}
	}
	return was, nil
}

// setRules sets the rules that all tasks share.
func (a *attempt) setRules() {
	limits := a.o.Target.Format.Limits()
	if a.losesSlots() {
		a.refuse(record.LossCluster)
	}
	a.rules = &transfer.Rules{
		Now:           a.o.Now,
		Selection:     a.o.Selection,
		SameName:      limits.SameName,
		FieldExpiry:   limits.FieldExpiry,
		StreamGroups:  limits.StreamGroups,
		NoBlankStream: limits.NoBlankStream,
		RedisStrings:  a.o.Target.Format.Name() != a.o.Source.Format.Name(),
		PlainZero:     a.o.onServer() || a.src.Format().Limits().Place == format.OnServer,
		ExactScores:   limits.WholeScores && a.src.Format().Limits().WholeScores,
		CountOnly:     a.id.Unproved,
		Lapse:         a.lapse(),
		Prefer:        a.o.Prefer,
		TempDir:       a.work.Spools(),
		Meter:         a.meter,
		Refused:       a.refused,
		Allows:        a.o.allows,
		Deep:          a.o.Plan,
		NewNames:      a.o.Plan && a.o.Rename,
	}
}

// lapse returns the expiry steps of a conversion into a server; nil for a target on disk, where records do not
// expire.
func (a *attempt) lapse() *transfer.Lapse {
	if a.o.onDisk() {
		return nil
	}
	return transfer.NewLapse(a.id.Began)
}

// isMade reports whether an earlier process finished the target.
func (a *attempt) isMade() bool { return a.state.Made != nil && a.o.onDisk() }

func (a *attempt) unmade() bool { return !a.isMade() }

// takeOver opens the target that an earlier process finished.
func (a *attempt) takeOver(ctx context.Context) (err error) {
	a.results, a.made = a.state.Tasks, a.state.Made
	a.stores.Adopt(a.state.Tasks)
	a.back, err = a.reread(ctx)
	return err
}

// transfer runs the tasks and decides whether their target may be published.
func (a *attempt) transfer(ctx context.Context) error {
	if err := a.runTasks(ctx, "convert", true); err != nil {
		return err
	}
	return a.judgeTasks()
}

// judgeTasks decides from the results of the tasks whether the target may be published.
func (a *attempt) judgeTasks() error {
	t, err := a.sum()
	if err != nil {
		return err
	}
	return a.mayPublish(t, t.Losses.List())
}

// foresee runs the tasks once without writing. It detects losses and existing keys before the first write, because
// data written to a server stays there.
func (a *attempt) foresee(ctx context.Context) error {
	adopted := slices.Clone(a.results)
	if err := a.runTasks(ctx, "count", false); err != nil {
		return err
	}
	if err := a.judgeTasks(); err != nil {
		return err
	}
	a.results = adopted
	return a.conflicts()
}

// restore brings back the tables of an earlier process that died while it finished the target. Data on a server needs
// no restore.
func (a *attempt) restore(context.Context) error {
	if a.o.onServer() {
		return nil
	}
	restored, err := a.work.Restore()
	if err != nil || restored || !a.state.Finishing {
		return err
	}
	if err := a.work.Clear(); err != nil {
		return err
	}
	a.state, err = a.fresh()
	return err
}

// isPlanned reports whether an earlier process planned the tasks.
func (a *attempt) isPlanned() bool { return a.state.ID != nil }

// planNew creates the target and plans its tasks.
func (a *attempt) planNew(ctx context.Context) error {
	// A process that died before its first line may have left an empty target.
	if err := disk.RemoveAll(a.work.Data()); err != nil {
		return err
	}
	if err := a.plan(ctx); err != nil {
		return err
	}
	a.id.Resort = a.resort
	if l, ok := a.target.(format.Loaded); ok {
		a.id.Target = l.Earlier()
	}
	return nil
}

// planned is the first line of the journal.
func (a *attempt) planned() work.Entry { return work.Entry{Plan: a.id} }

// isNew reports whether no earlier process left tasks to take up.
func (a *attempt) isNew() bool { return a.state.ID == nil || a.isMade() }

// takeUp creates the target and takes over the tasks of an earlier process.
func (a *attempt) takeUp(ctx context.Context) (err error) {
	if a.target, err = a.create(ctx, a.id.Plan.TargetDBs); err != nil {
		return err
	}
	return a.adopt()
}

// plan creates the target and plans its tasks. If databases are found only by scanning rows, unreadable data may hide
// a database, or all of them: then an empty selection is a loss and no error of the user.
func (a *attempt) plan(ctx context.Context) error {
	err := a.planReadable(ctx)
	var nothing *plan.NothingError
	var none *filter.NoDatabaseError
	if !errors.As(err, &nothing) && !errors.As(err, &none) {
		return err
	}
	lost := a.stores.PassedOver()
	if len(lost) == 0 {
		return err
	}
	if loss := a.o.markAllowed(lost); loss != nil && none == nil {
		return loss
	}
	return fmt.Errorf("%w; some data is unreadable: %s", err, lost[0].Samples[0].Detail)
}

// planReadable plans the readable part of the source.
func (a *attempt) planReadable(ctx context.Context) error {
	dbs, err := a.o.Selection.SelectDBs(a.src.Databases())
	if err != nil {
		return err
	}
	to := a.o.Target.Format.Limits()
	flat := to.Layouts && targetLayout(a.o, a.src, dbs) == format.LayoutFlat
	names := plan.TargetNames(dbs, a.src.Format().Limits(), to, flat, a.o.Namespace)
	if err := plan.Rename(dbs, names, a.o.RenameDB); err != nil {
		return err
	}
	if a.target, err = a.create(ctx, names); err != nil {
		return err
	}
	a.id.Plan, err = plan.New(a.src, dbs, names, a.target.Groups(), a.order(), &a.o.Selection.Filter,
		func(n int, do func(int) error) error { return pace.Each(n, a.o.Workers, do) })
	return err
}

// order returns the order that the plan must keep. Any order will do if the target accepts it and the source holds
// each name under one type only.
func (a *attempt) order() plan.Order {
	any := a.o.Target.Format.Limits().AnyOrder
	return plan.Order{Any: any && !a.o.Source.Format.Limits().SameName, Pieces: any}
}

// resumable reports whether the work of a failed run is kept: if the run was cancelled, a disk is full, or its server
// was lost; with Resume after any failure that another process can recover from.
func (r *run) resumable(cause error) bool {
	if r.shared != nil {
		return r.finishes() // no other process continues an attempt at a part
	}
	var proof *ProofError
	var count *CountError
	var space *SpaceError
	var existing *format.ExistingError
	if (errors.As(cause, &space) || errors.As(cause, &existing)) && !r.resumed { // no task has run yet
		return false
	}
	var nothing *plan.NothingError
	var lost *format.LostError
	var upload *UploadError
	if (errors.As(cause, &lost) || errors.As(cause, &upload)) && !r.o.Discard { // also if written keys are missing
		return r.work.Begun()
	}
	if errors.As(cause, &proof) || errors.As(cause, &count) || errors.As(cause, &nothing) {
		return false
	}
	if r.o.Resume {
		return r.work.Begun()
	}
	return !r.o.Discard && r.work.Done() > 0 && (errors.Is(cause, context.Canceled) || disk.IsFull(cause))
}

// giveUp ends a failed run. It removes its work unless it can be resumed.
func (r *run) giveUp(cause error) *UnfinishedError {
	if r.resumable(cause) {
		var cannot *work.ResumeError
		if r.resumed && !errors.As(cause, &cannot) && work.IsBroken(cause, r.work.Path) {
			cause = &work.ResumeError{Dir: r.work.Path, Err: cause}
		}
		return &UnfinishedError{Dir: r.work.Path, Resume: r.o.Resume, Kept: true, Err: errors.Join(cause, r.work.Close())}
	}
	return &UnfinishedError{Dir: r.work.Path, Resume: r.o.Resume, Err: errors.Join(cause, r.withdraw(r.sending)),
		Stuck: r.work.Discard()}
}

// planTrial plans the tasks of a conversion that writes nothing.
func (a *attempt) planTrial(ctx context.Context) error {
	a.rules.Dry = true
	return a.plan(ctx)
}

// count runs the tasks without writing.
func (a *attempt) count(ctx context.Context) error { return a.runTasks(ctx, "read", false) }

// fresh returns the state that a run begins with, or starts over with.
func (r *run) fresh() (*work.State, error) {
	switch {
	case r.shared == nil:
		return new(work.State), nil
	case r.finishes():
		return r.shared.Gather(r.work, new(work.State))
	}
	id, err := r.shared.Identity()
	return &work.State{ID: id}, err
}
