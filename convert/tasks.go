package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/transfer"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// adopt takes over the tasks that an earlier process finished, except those whose rows may be gone.
func (a *attempt) adopt() error {
	a.results = make([]*result.Result, len(a.id.Plan.Tasks))
	a.stores.Adopt(a.state.Tasks)
	for _, t := range a.state.Tasks {
		if t.N < 0 || t.N >= len(a.results) {
			return fmt.Errorf("%s: task %d is not in the plan", a.work.Path, t.N)
		}
		task := &a.id.Plan.Tasks[t.N]
		if task.Group != 0 {
			err := a.target.Adopt(t.N, task.TargetDB, t.Tables)
			if errors.Is(err, format.ErrGone) {
				continue
			}
			if err != nil {
				return &work.ResumeError{Dir: a.work.Path, Err: err}
			}
		}
		a.results[t.N] = t
	}
	return nil
}

// runTasks runs the unfinished tasks as one step of the run. Without write they only count.
func (a *attempt) runTasks(ctx context.Context, step string, write bool) error {
	p := a.id.Plan
	if a.results == nil {
		a.results = make([]*result.Result, len(p.Tasks))
	}
	var todo []pass.Task
	var total, done int64
	own := a.part.Of(p.Tasks)
	for i := range own {
		total += own[i].Bytes
		if a.results[own[i].N] == nil {
			todo = append(todo, own[i])
		} else {
			done += own[i].Bytes
		}
	}
	a.rules.Memory = pass.NewShares(a.o.Memory/4, todo, a.o.Workers)
	a.meter.Begin(step, total, done, len(todo))
	commits := work.NewCommits(a.o.Workers)
	err := pass.Run(ctx, todo, a.cores, a.o.shared(), func(ctx context.Context, t *pass.Task) error {
		return a.runTask(ctx, t, write, commits)
	})
	err = cmp.Or(err, commits.Wait())
	return a.sources.Err(err)
}

// runTask runs one task and queues its journal entry.
func (a *attempt) runTask(ctx context.Context, t *pass.Task, write bool, c *work.Commits) error {
	a.o.crash(fmt.Sprintf("task %d", t.N))
	res, err := transfer.Run(ctx, t, a.rules, a.src, a.target, write)
	if err != nil {
		return err
	}
	a.results[t.N] = res // no other task writes here
	if !write {
		return nil
	}
	return c.Start(func() error { return a.commit(t, res) })
}

// commit writes a task to the journal once its tables are on disk.
func (a *attempt) commit(t *pass.Task, res *result.Result) (err error) {
	res.Stores = a.stores.Unwritten()
	if a.rules.Refused.Load() {
		return nil
	}
	if t.Group != 0 {
		if res.Tables, err = a.target.Tables(t.N); err != nil {
			return err
		}
	}
	a.o.crash(fmt.Sprintf("written %d", t.N))
	return a.work.Append(work.Entry{Task: res})
}

// mayPublish decides from the totals whether the target may be published. It marks the allowed losses.
func (a *attempt) mayPublish(t *result.Totals, losses []result.LossKind) error {
	if err := a.o.markAllowed(losses); err != nil {
		return err
	}
	if err := t.Ledger.Check(); err != nil {
		return fmt.Errorf("the rows read do not add up: %w", err)
	}
	if a.part.N == 0 && len(t.Fingerprint.Parts())+len(t.Skipped.Parts()) == 0 && !a.o.Selection.Everything() {
		return &plan.NothingError{Why: fmt.Sprintf("no record of %s passes the filter", a.o.Source.Path)}
	}
	return nil
}

// sum adds up the results of all tasks. Findings that mean lost data count as losses, too.
func (a *attempt) sum() (*result.Totals, error) {
	t, err := result.Sum(a.results)
	if err != nil {
		return nil, err
	}
	a.stores.Tell(t.Findings.Report)
	t.Losses.Merge(result.LossesOf(t.Findings.List()))
	t.Losses.Merge(a.beyond())
	if a.losesSlots() {
		t.Losses.Merge([]result.LossKind{{Kind: record.LossCluster, Count: 1,
			Samples: []result.Sample{{Detail: "the source is a node of a cluster; without --cluster the slots of its keys are left out"}}}})
	}
	return t, nil
}

// beyond lists, as notes, the databases whose numbers servers of the target do not support.
func (a *attempt) beyond() (out []result.LossKind) {
	to := a.o.Target.Format.Limits()
	l := result.LossKind{Kind: record.LossDatabase, Note: true}
	for i, db := range a.id.Plan.TargetDBs {
		if !plan.Unseen(db, to) {
			continue
		}
		from := a.id.Plan.DBs[i]
		l.Count++
		l.Samples = append(l.Samples, result.Sample{DB: jsonl.Text(from),
			Detail: fmt.Sprintf("servers of the target have databases 0 to %d; converted by itself, with --db %s, it becomes database 0",
				to.MaxDBs-1, from)})
	}
	if l.Count > 0 {
		out = append(out, l)
	}
	return out
}
