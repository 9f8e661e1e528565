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
)

// conclude proves, reports and publishes.
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
	switch {
	case a.o.NoProve:
		rep.Proof.Why = "--no-prove was given"
	case back == nil:
		rep.Proof.Why = "the target cannot be read back"
	default:
		if err := a.prove(ctx, back, &t.fingerprint); err != nil {
			return nil, err
		}
		rep.Proof = Proof{Done: true, Unit: unitName(a.o.seconds())}
	}
	a.timings.Prove = time.Since(start).Seconds()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.o.crash("proved")
	rep.Target.measure(a.made.Files)
	if rep.SlaveOf, err = followLines(a.src, a.o.Source.Path); err != nil {
		return nil, err
	}
	a.meter.begin("publish", 0, 0)
	a.timings.Total = time.Since(a.began).Seconds()
	rep.Timings = a.timings
	if err := rep.write(a.work.report()); err != nil {
		return nil, err
	}
	if err := a.work.append(entry{Proved: true}); err != nil {
		return nil, err
	}
	rep.Earlier, err = a.publish(t)
	return rep, err
}

func unitName(seconds bool) string {
	if seconds {
		return "seconds"
	}
	return "milliseconds"
}

// publish makes the finished target and its report appear at their places. Everything is on disk
// before the one rename that makes the target exist. It returns where an earlier report is kept.
func (a *attempt) publish(t *totals) (earlier string, err error) {
	if err := syncTree(a.work.data()); err != nil {
		return "", err
	}
	if err := a.checkCounts(t); err != nil {
		return "", err
	}
	a.o.crash("publish")
	if err := renameNew(a.work.data(), a.work.target); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("made by somebody else while the conversion ran: %w", &existsError{path: a.work.target})
		}
		return "", err
	}
	a.o.crash("renamed")
	return a.work.conclude()
}

// conclude publishes the report and ends the work. The target is in its place. It returns where the
// report that was there is kept, "" when there was none.
func (w *work) conclude() (earlier string, err error) {
	_, err = os.Lstat(w.report())
	if err == nil {
		earlier, err = setAside(ReportPath(w.target))
	}
	if err == nil {
		err = renameNew(w.report(), ReportPath(w.target))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return earlier, err
	}
	if err := syncDir(filepath.Dir(w.target)); err != nil {
		return earlier, err
	}
	return earlier, w.discard()
}

// concluded reports whether a run had published its target and died before the end.
func (w *work) concluded(state *journaled) bool {
	if !state.proved {
		return false
	}
	_, data := os.Lstat(w.data())
	_, target := os.Lstat(w.target)
	return errors.Is(data, fs.ErrNotExist) && target == nil
}

// syncTree makes a tree durable: files first, then the directories that name them.
func syncTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, path)
			return nil
		}
		return syncDir(path)
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = syncDir(dirs[i])
	}
	return err
}

// syncDir makes a directory, or a file, durable.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// renameChecked renames a directory where the system cannot refuse to replace by itself. Between
// the check and the rename somebody could make the target; rename(2) then replaces it only when it
// is an empty directory, and fails otherwise.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
