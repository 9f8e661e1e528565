package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"kvferry/convert/result"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
)

// PartReport describes a finished part of a conversion.
type PartReport struct {
	Part  int    `json:"part"`
	Parts int    `json:"parts"`
	Tool  string `json:"tool"`
	// Already is true if another process had finished the part. The rest is its report then.
	Already bool      `json:"already,omitempty"`
	Source  Dataset   `json:"source"`
	Target  Dataset   `json:"target"`
	Now     time.Time `json:"now"` // the time at which keys counted as expired
	// Tasks and Bytes measure the part, AllTasks and AllBytes the plan. Bytes are approximate sizes in the source.
	Tasks       int                  `json:"tasks"`
	AllTasks    int                  `json:"all_tasks"`
	Bytes       int64                `json:"bytes"`
	AllBytes    int64                `json:"all_bytes"`
	Fingerprint []result.PartDigest  `json:"fingerprint"`
	Ledger      []Account            `json:"ledger"`
	Losses      []result.LossKind    `json:"losses"`
	Findings    []result.FindingKind `json:"findings"`
	Timings     Timings              `json:"timings"`
	// Missing are the parts that were not finished when this one was.
	Missing []int `json:"missing"`
}

// MissingError means that a target cannot be finished, because parts of it are missing.
type MissingError struct {
	Target  string
	Missing []int
	Parts   int // 0: no part has begun, so their number is unknown
}

// Error counts the missing parts.
func (e *MissingError) Error() string {
	if e.Parts == 0 {
		return e.Target + ": no part of it has run"
	}
	return fmt.Sprintf("%s: %d of %d parts are missing", e.Target, len(e.Missing), e.Parts)
}

// finishes reports whether the run builds the target from finished parts.
func (r *run) finishes() bool { return r.shared != nil && r.part.N == 0 }

// checkParts returns an error for a conversion that must run as a whole.
func (o *Options) checkParts() error {
	switch {
	case o.onServer():
		return format.Usagef("a target on a server is not written in parts: convert to a directory or an RDB file in parts, or to the server in one run")
	case o.Source.Format.Limits().Place == format.OnServer || o.Source.Path == "-":
		return format.Usagef("%s: processes that read it at different times would not see the same data: convert it to an RDB file first, and that in parts", o.Source.Path)
	case o.Discard:
		return format.Usagef("--discard drops all parts of a conversion, also those that other processes work on: remove %s instead", work.Path(o.Target.Path))
	}
	return nil
}

// RunPart converts one part of a dataset into the work directory of the target, which other processes share. Finish
// makes the target of all parts. It may be called for the same part by several processes; the first to finish wins.
func RunPart(ctx context.Context, opts *Options, part pass.Part) (*PartReport, error) {
	o, err := opts.normalize()
	if err == nil {
		err = o.checkParts()
	}
	if err != nil {
		return nil, err
	}
	if o.finished() != nil {
		return &PartReport{Part: part.K, Parts: part.N, Tool: o.Tool, Already: true}, nil
	}
	if err := o.checkPaths(); err != nil {
		return nil, err
	}
	r := &run{o: o, part: part, began: time.Now()}
	if r.shared, err = work.OpenParts(o.Target.Path); err != nil {
		return nil, err
	}
	state, err := r.fresh()
	if err == nil {
		_, err = r.continues(state.ID)
	}
	if err != nil {
		return nil, err
	}
	if r.shared.Done(part) {
		return r.done(true)
	}
	if r.work, err = r.shared.Attempt(part, o.TempDir); err == nil {
		err = r.attempts(ctx, state)
	}
	if err != nil && r.shared.Done(part) { // another process was faster, and removed what this one wrote
		return r.done(true)
	}
	if err != nil {
		return nil, err
	}
	return r.done(false)
}

// attempts does the part, from the plan of state if that has one.
func (r *run) attempts(ctx context.Context, state *work.State) error {
	r.meter = progress.Start(r.o.steps(partial), r.o.Progress)
	defer r.meter.Close()
	_, err := r.all(ctx, state, partial)
	var other *plannedError
	if errors.As(err, &other) {
		if err = r.work.Clear(); err == nil {
			_, err = r.all(ctx, &work.State{ID: other.id}, partial)
		}
	}
	if err != nil {
		return r.giveUp(err)
	}
	return nil
}

// finished returns the report of the target if earlier processes built it in parts from the same source with the same
// options, else nil. Schedulers run a part or the finish again if they lose its outcome.
func (o *Options) finished() *Report {
	if _, err := disk.Lstat(o.Target.Path); err != nil || work.FindParts(o.Target.Path).Exist() {
		return nil
	}
	rep, err := ReadReport(ReportPath(o.Target.Path))
	if err != nil || rep.InParts == 0 || rep.Source.Path != o.Source.Path || !maps.Equal(rep.Options, optionTexts(o)) {
		return nil
	}
	return rep
}

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

// plannedError means that another process has published its plan first.
type plannedError struct{ id *work.Identity }

func (e *plannedError) Error() string { return "planned by another process" }

// share publishes the plan. If another process was first, this one starts over with that plan.
func (a *attempt) share(context.Context) error {
	id, own, err := a.shared.Publish(a.id)
	if err == nil && !own {
		err = &plannedError{id}
	}
	return err
}

// note begins the journal of the part. It repeats the identity without the tasks.
func (a *attempt) note(context.Context) error {
	id := *a.id
	id.Plan, id.Files = nil, nil
	return a.work.Append(work.Entry{Plan: &id})
}

// begin creates the directory that the tasks of the part write to.
func (a *attempt) begin(ctx context.Context) (err error) {
	a.target, err = a.create(ctx, a.id.Plan.TargetDBs)
	return err
}

// publishPart writes the report of the part and makes the part appear.
func (a *attempt) publishPart(ctx context.Context) error {
	t, err := a.sum()
	if err != nil {
		return err
	}
	own := a.part.Of(a.id.Plan.Tasks)
	all := a.report(t)
	a.timings.Total, a.timings.Resumed = time.Since(a.began).Seconds(), false
	rep := &PartReport{Part: a.part.K, Parts: a.part.N, Tool: all.Tool, Source: all.Source, Target: all.Target, Now: all.Now,
		Tasks: len(own), AllTasks: all.Tasks, AllBytes: a.id.Plan.Bytes, Fingerprint: all.Parts, Ledger: all.Ledger,
		Losses: all.Losses, Findings: all.Findings, Timings: a.timings}
	for i := range own {
		rep.Bytes += own[i].Bytes
	}
	data, err := json.MarshalIndent(rep, "", "  ")
	if err == nil {
		err = a.work.WriteReport(append(data, '\n'))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return a.shared.Adopt(a.work, a.part)
}

// done returns the report of the finished part.
func (r *run) done(already bool) (*PartReport, error) {
	path := r.shared.Report(r.part)
	data, err := disk.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rep := new(PartReport)
	if err := json.Unmarshal(data, rep); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	rep.Already, rep.Missing = already, r.shared.Missing(r.part.N)
	return rep, nil
}

// Finish makes the target of its parts, proves and publishes it, as Run does. If parts are missing, it returns a
// *MissingError. It continues the work of an earlier process that died.
func Finish(ctx context.Context, opts *Options) (*Report, error) {
	o, err := opts.normalize()
	if err == nil {
		err = o.checkParts()
	}
	if err != nil {
		return nil, err
	}
	o.Resume = true
	if rep := o.finished(); rep != nil {
		return rep, nil
	}
	r := &run{o: o, shared: work.FindParts(o.Target.Path)}
	open := func() (*work.Dir, *work.State, error) { return r.shared.Open(o.TempDir) }
	if rep, done, err := concludeEarlier(o, open); done || err != nil {
		return rep, err
	}
	if err := o.checkPaths(); err != nil {
		return nil, err
	}
	id, err := r.shared.Identity()
	if err != nil {
		return nil, err
	}
	if id == nil {
		return nil, &MissingError{Target: o.Target.Path}
	}
	if _, err := r.continues(id); err != nil {
		return nil, err
	}
	if missing := r.shared.Missing(id.Parts); missing != nil {
		return nil, &MissingError{Target: o.Target.Path, Missing: missing, Parts: id.Parts}
	}
	var state *work.State
	if r.work, state, err = open(); err != nil {
		return nil, err
	}
	if state, err = r.shared.Gather(r.work, state); err != nil {
		return nil, errors.Join(err, r.work.Close())
	}
	return r.toEnd(ctx, state)
}
