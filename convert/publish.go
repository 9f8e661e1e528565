package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"kvferry/convert/result"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/sys/disk"
)

// conclude proves the target.
func (a *attempt) conclude(ctx context.Context) error {
	t, err := a.sum()
	if err != nil {
		return err
	}
	a.rep = a.report(t)
	if err := a.o.markAllowed(a.rep.Losses); err != nil {
		return err
	}
	loaded, isLoaded := a.target.(format.Loaded)
	if isLoaded {
		a.rep.Before = loaded.Before()
	}
	switch {
	case isLoaded && a.back == nil:
		a.rep.Proof, err = a.counted(ctx, loaded, t)
	case a.o.NoProve:
		a.rep.Proof.Why = "--no-prove was given"
	case a.back == nil:
		a.rep.Proof.Why = "the target cannot be read back"
	default:
		a.rep.Proof, err = a.proved(ctx, a.back, t)
	}
	if err != nil {
		return err
	}
	if err := a.checkMade(t); err != nil {
		return err
	}
	return ctx.Err()
}

// writeReport writes the report to the work directory.
func (a *attempt) writeReport(context.Context) (err error) {
	a.rep.Target.measure(a.made.Files)
	if a.rep.Follow, err = following(a.src, a.o.Target.Format, a.o.Source.Path); err != nil {
		return err
	}
	a.timings.Total = time.Since(a.began).Seconds()
	a.rep.Timings = a.timings
	a.rep.Traffic = a.o.Traffic.Counts()
	if a.reported, err = a.rep.encode(); err != nil {
		return err
	}
	return a.work.WriteReport(a.reported)
}

// sync makes the target durable before the rename that makes it exist.
func (a *attempt) sync(context.Context) error { return a.work.Sync() }

// publishReport moves the report into place, before the target. The target on a server is in place already.
func (a *attempt) publishReport(context.Context) (err error) {
	a.rep.Earlier, err = a.work.PublishReport()
	return err
}

// withdrawReport undoes publishReport.
func (a *attempt) withdrawReport(err error) error {
	return errors.Join(err, a.work.WithdrawReport(a.rep.Earlier))
}

// checkMade compares the files of the target with the totals of the tasks and with the contents of its stores.
func (a *attempt) checkMade(t *result.Totals) error {
	if err := a.made.CheckCounts(t); err != nil {
		return err
	}
	return a.made.CheckStores(&a.opened, a.work.Data())
}

// checkReport compares the published report with the encoded one.
func (a *attempt) checkReport() error {
	is, err := disk.ReadFile(ReportPath(a.work.Target))
	if err == nil && !bytes.Equal(is, a.reported) {
		err = &CountError{What: fmt.Sprintf("somebody else changed %s, its report", a.work.Report())}
	}
	return err
}

// appear checks the report and the files a last time and renames the target into place, or makes its upload whole.
func (a *attempt) appear(ctx context.Context) error {
	if err := a.checkReport(); err != nil {
		return err
	}
	if err := a.made.CheckFiles(a.work.Data()); err != nil {
		return err
	}
	if a.o.uploads() {
		return a.publishUpload(ctx)
	}
	err := disk.RenameNew(a.work.Data(), a.work.Target)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("created by another process while the conversion ran: %w", &work.ExistsError{Path: a.work.Target})
	}
	return err
}

// report builds the report.
func (a *attempt) report(t *result.Totals) *Report {
	o := a.o
	rep := &Report{
		File:    ReportPath(o.Target.Path),
		Tool:    o.Tool,
		Source:  Dataset{Path: o.Source.Path, Format: o.Source.Format.Name(), Store: o.Source.Store, DBs: a.id.Plan.DBs},
		Target:  Dataset{Path: o.Target.Shown(), Format: o.Target.Format.Name(), Store: o.Target.Store, DBs: a.id.Plan.TargetDBs},
		Options: a.id.Options,
		Now:     o.Now,
		Tasks:   len(a.id.Plan.Tasks),
		Workers: o.Workers,
		InParts: a.id.Parts,
		Parts:   result.Parts(&t.Fingerprint),
		Skipped: result.Parts(&t.Skipped),
		Ledger:  accounts(&t.Ledger),
		Rows:    &t.Ledger,
		Losses:  t.Losses.List(),
		Shape:   a.shape(),
		Back:    a.rules.Back,
		Cluster: a.cluster() && !a.losesSlots(),
	}
	rep.Findings = t.Findings.List()
	if f, ok := format.As[format.Filed](a.src); ok {
		rep.Source.Files, rep.Source.Bytes = f.Files()
	}
	return rep
}
