package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"kvferry/convert/result"
	"kvferry/convert/work"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/escape"
)

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
		Losses: all.Losses, Findings: all.Findings, Timings: a.timings, Bytes: pass.Bytes(own)}
	data, err := escape.Document(rep)
	if err == nil {
		err = a.work.WriteReport(data)
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
