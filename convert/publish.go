package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"kvferry/convert/paths"
	"kvferry/convert/result"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/sys/disk"
)

// conclude proves the target and prepares the report, so that both can be published.
func (a *attempt) conclude(ctx context.Context, back format.Source) (*Report, error) {
	t, err := a.sum()
	if err != nil {
		return nil, err
	}
	rep := a.report(t)
	if err := a.o.judge(rep.Losses); err != nil {
		return nil, err
	}
	start := time.Now()
	loaded, isLoaded := a.target.(format.Loaded)
	switch {
	case isLoaded && back == nil:
		rep.Proof, err = a.counted(ctx, loaded, t)
	case a.o.NoProve:
		rep.Proof.Why = "--no-prove was given"
	case back == nil:
		rep.Proof.Why = "the target cannot be read back"
	default:
		rep.Proof, err = a.proved(ctx, back, t)
	}
	if err != nil {
		return nil, err
	}
	if err := a.checkMade(t); err != nil {
		return nil, err
	}
	a.timings.Prove = time.Since(start).Seconds()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.o.crash("proved")
	rep.Target.measure(a.made.Files)
	if rep.Follow, err = following(a.src, a.o.Target.Format, a.o.Source.Path); err != nil {
		return nil, err
	}
	a.meter.Enter("publish")
	a.timings.Total = time.Since(a.began).Seconds()
	rep.Timings = a.timings
	if a.reported, err = rep.encode(); err != nil {
		return nil, err
	}
	if err := a.work.WriteReport(a.reported); err != nil {
		return nil, err
	}
	if err := a.work.Append(work.Entry{Proved: true}); err != nil {
		return nil, err
	}
	return rep, nil
}

// publish moves the finished target and its report into place. Everything is synced before the rename that
// makes the target exist. It returns the path of an earlier report. After a *PublishedError the target exists.
func (a *attempt) publish() (earlier string, err error) {
	if a.o.Target.Address != "" { // it is already in place
		if earlier, err = a.work.PublishReport(); err != nil {
			return "", err
		}
		a.o.crash("reported")
		return earlier, a.work.Conclude()
	}
	if err := a.work.Sync(); err != nil {
		return "", err
	}
	a.o.crash("publish")
	if earlier, err = a.work.PublishReport(); err != nil {
		return "", err
	}
	a.o.crash("reported")
	if err := a.appear(); err != nil {
		return "", errors.Join(err, a.work.WithdrawReport(earlier))
	}
	a.o.crash("renamed")
	return earlier, a.work.Conclude()
}

// checkMade compares the files of the target with the totals of the tasks and with the contents of its stores.
func (a *attempt) checkMade(t *result.Totals) error {
	if err := a.made.CheckCounts(t); err != nil {
		return err
	}
	return a.made.CheckStores(&a.opened, a.work.Data())
}

// checkReport compares the published report with the one that was encoded.
func (a *attempt) checkReport() error {
	is, err := disk.ReadFile(ReportPath(a.work.Target))
	if err == nil && !bytes.Equal(is, a.reported) {
		err = &CountError{What: fmt.Sprintf("somebody else changed %s, its report", a.work.Report())}
	}
	return err
}

// appear checks the report and the files a last time and renames the target into place.
func (a *attempt) appear() error {
	if err := a.checkReport(); err != nil {
		return err
	}
	if err := a.made.CheckFiles(a.work.Data()); err != nil {
		return err
	}
	err := disk.RenameNew(a.work.Data(), a.work.Target)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("created by another process while the conversion ran: %w", &paths.ExistsError{Path: a.work.Target})
	}
	return err
}
