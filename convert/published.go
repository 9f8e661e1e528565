package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kvferry/internal/disk"
)

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

// writeReport writes the report to the work directory, completely.
func (w *work) writeReport(data []byte) error {
	path := w.report()
	f, err := disk.Create(path + halfSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return disk.Rename(path+halfSuffix, path)
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

// setAside renames the report of an earlier conversion to the first free number and returns its new path, or
// "" if there is none: dst.kvferry-report.json becomes dst.kvferry-report.1.json.
func setAside(path string) (string, error) {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.%d.json", strings.TrimSuffix(path, ".json"), n)
		err := disk.RenameNew(path, to)
		switch {
		case err == nil:
			return to, nil
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case !errors.Is(err, fs.ErrExist):
			return "", err
		}
	}
}
