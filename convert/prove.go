package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/transfer"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/record"
)

// ProofError means that the target differs from the source. It was not published.
type ProofError struct {
	Parts    []Mismatch
	Findings []result.FindingKind // errors in the target
	Err      error                // the target could not be read
	Loaded   bool                 // the data is on a server, where it stays
}

// Unwrap returns the read error, or the failed key count of a server.
func (e *ProofError) Unwrap() error { return e.Err }

// Mismatch is a part in which source and target differ.
type Mismatch struct {
	DB, Type       string
	Source, Target record.Digest
}

// Error lists the parts that differ.
func (e *ProofError) Error() string {
	var parts []string
	for _, m := range e.Parts {
		parts = append(parts, fmt.Sprintf("database %s %s: %s", m.DB, m.Type, m.difference()))
	}
	for _, f := range e.Findings {
		parts = append(parts, fmt.Sprintf("%s × %s, such as %s", record.Number(f.Count), f.Kind, f.Samples[0]))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	outcome := "the target was not published"
	if e.Loaded {
		outcome = "the written data stays on the server"
	}
	return "the proof failed; " + outcome + ": " + strings.Join(parts, "; ")
}

func (m *Mismatch) difference() string {
	if m.Source.Records != m.Target.Records || m.Source.Elements != m.Target.Elements {
		return fmt.Sprintf("%s and %s were written, %s and %s read back",
			record.Count(m.Source.Records, "record"), record.Count(m.Source.Elements, "element"), record.Number(m.Target.Records),
			record.Number(m.Target.Elements))
	}
	return fmt.Sprintf("fingerprint %s was written, %s read back", m.Source.Millis, m.Target.Millis)
}

// prove reads the target back, but for what other processes have read, and compares it with the fingerprint of the
// written records. Errors that the source has, too, are a loss that was allowed, and no faults of the target. It returns
// the number of parts that others have read.
func (a *attempt) prove(ctx context.Context, back format.Source, want *record.Fingerprint,
	source []result.FindingKind) (others int, err error) {
	all, tasks, err := a.proofs(plan.ProofTasks(back, a.id.Plan))
	if err != nil {
		return 0, err
	}
	own, err := a.readBack(ctx, back, tasks)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	got, bad := result.Sum(append(all, own))
	if bad != nil {
		return 0, bad
	}
	if err == nil {
		err = got.Ledger.Check()
	}
	faults := slices.DeleteFunc(got.Findings.List(), func(f result.FindingKind) bool {
		return slices.ContainsFunc(source, func(s result.FindingKind) bool {
			return s.Kind == f.Kind && s.Severity == f.Severity && s.Count >= f.Count
		})
	})
	err = compare(want, &got.Fingerprint, a.o.seconds(), faults, err)
	if wrong := (*ProofError)(nil); errors.As(err, &wrong) {
		wrong.Loaded = a.o.onServer()
	}
	return len(all), err
}

// readBack reads tasks of the target.
func (a *attempt) readBack(ctx context.Context, back format.Source, tasks []pass.Task) (*result.Result, error) {
	a.meter.Begin("prove", pass.Bytes(tasks), 0, len(tasks))
	memory := pass.NewShares(a.o.Memory/2, tasks, a.o.Workers) // no writer needs memory now
	var got record.Fingerprint
	var findings result.Findings
	findings.Merge(a.told.List())
	var ledger record.Ledger
	var mu sync.Mutex
	err := pass.Run(ctx, tasks, a.cores, a.o.shared(), func(ctx context.Context, t *pass.Task) error {
		var own result.Findings
		f, l, err := transfer.Prove(ctx, t, a.rules, memory.Of(t), back, own.Report)
		if err != nil {
			return err
		}
		findings.Merge(own.List())
		mu.Lock()
		defer mu.Unlock()
		got.Merge(f)
		ledger.Merge(l)
		return nil
	})
	return &result.Result{Parts: result.Parts(&got), Ledger: ledger.Snapshot(), Findings: findings.List()}, err
}

// compare returns a ProofError unless the fingerprints are equal, err is nil and no finding is an error.
func compare(want, got *record.Fingerprint, seconds bool, findings []result.FindingKind, err error) error {
	e := &ProofError{}
	if err != nil {
		e.Err = fmt.Errorf("reading the target back: %v", err)
	} else {
		w, g := want.Parts(), got.Parts()
		for _, p := range want.Diff(got, seconds) {
			e.Parts = append(e.Parts, Mismatch{p.DB, p.Type.String(), w[p], g[p]})
		}
		slices.SortFunc(e.Parts, func(a, b Mismatch) int {
			return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Type, b.Type))
		})
	}
	for _, f := range findings {
		if f.Severity == record.Error.String() {
			e.Findings = append(e.Findings, f)
		}
	}
	if e.Err == nil && len(e.Parts) == 0 && len(e.Findings) == 0 {
		return nil
	}
	return e
}

// counted compares the number of keys on a server with the number written to it.
func (a *attempt) counted(ctx context.Context, server format.Loaded, t *result.Totals) (Proof, error) {
	_, expired := t.Without(a.rules.Lapse.Gone(time.Now()))
	why, err := server.Check(ctx, t.Given(), expired)
	if err != nil {
		return Proof{}, &ProofError{Err: err, Loaded: true}
	}
	return Proof{Counted: true, Why: why}, nil
}

// proved proves a target that was read back. It leaves out records and fields that may have expired by now.
func (a *attempt) proved(ctx context.Context, back format.Source, t *result.Totals) (p Proof, err error) {
	a.rules.Gone = a.rules.Lapse.Gone(time.Now())
	want, expired := t.Without(a.rules.Gone)
	p.Unit = unitName(a.o.seconds())
	for _, n := range expired {
		p.Expired += n
	}
	for _, e := range t.Expiring {
		if e.Until <= a.rules.Gone {
			p.ExpiredFields += e.Fields
		}
	}
	if a.o.onDisk() {
		if p.Cached, err = a.made.DropCached(a.work.Data()); err != nil {
			return p, err
		}
		if err := sameExtra(a.src, a.o.Source.Path, a.work.Data()); err != nil {
			return p, &ProofError{Err: err}
		}
		if err := a.made.CheckFiles(a.work.Data()); err != nil {
			return p, err
		}
	}
	others, err := a.prove(ctx, back, want, t.Findings.List())
	p.Done, p.Parts = err == nil, others
	return p, err
}

func unitName(seconds bool) string {
	if seconds {
		return "seconds"
	}
	return "milliseconds"
}
