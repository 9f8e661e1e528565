package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kvferry/format"
	"kvferry/internal/disk"
)

// conclude proves the target and prepares the report, so that both can be published.
func (a *attempt) conclude(ctx context.Context, back format.Source) (*Report, error) {
	t, err := a.sum()
	if err != nil {
		return nil, err
	}
	rep := a.report(t)
	if err := judge(rep.Losses, a.o); err != nil {
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
	if err := a.checkCounts(t); err != nil {
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
	if a.reported, err = rep.write(a.work.report()); err != nil {
		return nil, err
	}
	if err := a.work.append(entry{Proved: true}); err != nil {
		return nil, err
	}
	return rep, nil
}

func unitName(seconds bool) string {
	if seconds {
		return "seconds"
	}
	return "milliseconds"
}

// PublishedError is an error after the target was published: target and report are complete.
type PublishedError struct {
	Target string
	Dir    string // work directory of the run
	// Synced is true if target and report are durable: only removing Dir failed.
	Synced bool
	Kept   bool // --resume looks for them again
	Err    error
}

// Error describes the state of the target.
func (e *PublishedError) Error() string {
	if e.Synced {
		return fmt.Sprintf("%s is complete, but %s, which is no longer needed, could not be removed: %v; remove it", e.Target, e.Dir, e.Err)
	}
	todo := "sync the disk and look for them before you rely on them"
	if e.Kept {
		todo = "run the same command with --resume, which looks for them again"
	}
	return fmt.Sprintf("%s is complete and its report belongs in %s, but the disk has not confirmed their names: %v; %s",
		e.Target, ReportPath(e.Target), e.Err, todo)
}

// Unwrap returns the cause.
func (e *PublishedError) Unwrap() error { return e.Err }

// publish moves the finished target and its report into place. Everything is synced before the rename that
// makes the target exist. It returns the path of an earlier report. After a *PublishedError the target exists.
func (a *attempt) publish() (earlier string, err error) {
	if a.o.Target.Address != "" { // it is already in place
		if earlier, err = a.work.publishReport(); err != nil {
			return "", err
		}
		a.o.crash("reported")
		return earlier, a.work.conclude()
	}
	if err := syncTree(a.work.data()); err != nil {
		return "", err
	}
	a.o.crash("publish")
	if earlier, err = a.work.publishReport(); err != nil {
		return "", err
	}
	a.o.crash("reported")
	if err := a.appear(); err != nil {
		return "", errors.Join(err, a.work.withdrawReport(earlier))
	}
	a.o.crash("renamed")
	return earlier, a.work.conclude()
}

// appear renames the target into place, right after the last check of what is published.
func (a *attempt) appear() error {
	if err := a.checkReport(); err != nil {
		return err
	}
	if err := a.checkFiles(); err != nil {
		return err
	}
	err := disk.RenameNew(a.work.data(), a.work.target)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("created by another process while the conversion ran: %w", &existsError{path: a.work.target})
	}
	return err
}

// publishReport publishes the report before the target, so that a target always has one. The work directory keeps
// another link to the report, by which a later process recognizes it. It returns the new path of an earlier report,
// or "" if there was none.
func (w *work) publishReport() (earlier string, err error) {
	to := ReportPath(w.target)
	if earlier, err = setAside(to); err != nil {
		return "", err
	}
	if err = disk.Link(w.report(), to); err != nil { // not every file system has links
		err = disk.RenameNew(w.report(), to)
	}
	if err != nil && earlier != "" {
		err = errors.Join(err, disk.RenameNew(earlier, to))
	}
	return earlier, err
}

// withdrawReport undoes publishReport.
func (w *work) withdrawReport(earlier string) error {
	err := disk.Remove(ReportPath(w.target))
	if err == nil && earlier != "" {
		err = disk.RenameNew(earlier, ReportPath(w.target))
	}
	return err
}

// withdrawOrphan removes the report of this work if a process died before it published the target.
func (w *work) withdrawOrphan() error {
	if _, err := disk.Lstat(w.target); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	own, err := w.ownReport()
	if err != nil || own != published {
		return err
	}
	return disk.Remove(ReportPath(w.target))
}

// reportState says where the report of a work is.
type reportState uint8

const (
	unwritten   reportState = iota // nowhere in the work directory: none was written, or it was moved where there are no links
	unpublished                    // in the work directory alone
	published                      // at the target, too
)

// ownReport looks for the report of this work.
func (w *work) ownReport() (reportState, error) {
	own, err := disk.Lstat(w.report())
	if errors.Is(err, fs.ErrNotExist) {
		return unwritten, nil
	}
	if err != nil {
		return 0, err
	}
	there, err := disk.Lstat(ReportPath(w.target))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unpublished, nil
	case err != nil:
		return 0, err
	case os.SameFile(own, there):
		return published, nil
	}
	return unpublished, nil
}

// concludeLost ends the work of a process that died after it had published. In a crash of the machine the report may have
// lost its name, but the target not; then it is published again.
func (w *work) concludeLost() error {
	own, err := w.ownReport()
	if err == nil && own == unpublished {
		_, err = w.publishReport()
	}
	if err != nil {
		return &PublishedError{Target: w.target, Dir: w.dir, Kept: true, Err: errors.Join(err, w.close())}
	}
	return w.conclude()
}

// conclude ends the work once the target and its report are published.
func (w *work) conclude() error {
	if err := disk.SyncPath(filepath.Dir(w.target)); err != nil {
		return &PublishedError{Target: w.target, Dir: w.dir, Err: errors.Join(err, w.discard())}
	}
	if err := w.discard(); err != nil {
		return &PublishedError{Target: w.target, Dir: w.dir, Synced: true, Err: err}
	}
	return nil
}

// concluded reports whether a run died after it had published its target.
func (w *work) concluded(state *journaled) bool {
	if !state.proved {
		return false
	}
	_, data := disk.Lstat(w.data())
	_, target := disk.Lstat(w.target)
	return errors.Is(data, fs.ErrNotExist) && target == nil
}

// syncTree syncs a tree: files first, then their directories.
func syncTree(dir string) error {
	var dirs []string
	err := disk.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, path)
			return nil
		}
		return disk.SyncPath(path)
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = disk.SyncPath(dirs[i])
	}
	return err
}
