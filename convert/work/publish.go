package work

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kvferry/internal/sys/disk"
)

// PublishedError is an error after the target was published: target and report are complete.
type PublishedError struct {
	Target string
	Name   string // what people call it; "": Target
	Dir    string // work directory of the run
	// Synced is true if target and report are durable: only removing Dir failed.
	Synced bool
	Kept   bool // --resume looks for them again
	Err    error
}

// Error describes the state of the target.
func (e *PublishedError) Error() string {
	if e.Synced {
		return fmt.Sprintf("%s is complete, but %s, which is no longer needed, could not be removed: %v; remove it",
			cmp.Or(e.Name, e.Target), e.Dir, e.Err)
	}
	todo := "sync the disk and look for them before you rely on them"
	if e.Kept {
		todo = "run the same command with --resume, which looks for them again"
	}
	return fmt.Sprintf("%s is complete and its report belongs in %s, but the disk has not confirmed their names: %v; %s",
		cmp.Or(e.Name, e.Target), ReportPath(e.Target), e.Err, todo)
}

// Unwrap returns the cause.
func (e *PublishedError) Unwrap() error { return e.Err }

// WriteReport writes the report to the work directory, completely.
func (w *Dir) WriteReport(data []byte) error {
	path := w.Report()
	if err := disk.WriteSynced(path+halfSuffix, data); err != nil {
		return err
	}
	return disk.Rename(path+halfSuffix, path)
}

// PublishReport publishes the report before the target, so that a target always has a report. The work directory
// keeps another link to the report, by which a later process recognizes it. It returns the new path of an earlier
// report, or "" if none exists.
func (w *Dir) PublishReport() (earlier string, err error) {
	to := ReportPath(w.Target)
	if earlier, err = setAside(to); err != nil {
		return "", err
	}
	if err = disk.Link(w.Report(), to); err != nil { // not every file system has links
		err = disk.RenameNew(w.Report(), to)
	}
	if err != nil && earlier != "" {
		err = errors.Join(err, disk.RenameNew(earlier, to))
	}
	return earlier, err
}

// WithdrawReport undoes PublishReport.
func (w *Dir) WithdrawReport(earlier string) error {
	err := disk.Remove(ReportPath(w.Target))
	if err == nil && earlier != "" {
		err = disk.RenameNew(earlier, ReportPath(w.Target))
	}
	return err
}

// WithdrawOrphan removes the report of this work if a process died before it published the target.
func (w *Dir) WithdrawOrphan() error {
	if _, err := disk.Lstat(w.Target); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	own, err := w.ownReport()
	if err != nil || own != published {
		return err
	}
	return disk.Remove(ReportPath(w.Target))
}

// reportState is the location of the report.
type reportState uint8

const (
	unwritten   reportState = iota // not in the work directory: not written yet, or moved on a file system without links
	unpublished                    // only in the work directory
	published                      // also at its final path
)

// ownReport locates the report.
func (w *Dir) ownReport() (reportState, error) {
	own, err := disk.Lstat(w.Report())
	if errors.Is(err, fs.ErrNotExist) {
		return unwritten, nil
	}
	if err != nil {
		return 0, err
	}
	there, err := disk.Lstat(ReportPath(w.Target))
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

// ConcludeLost ends the work of a process that died after it published the target. If a crash of the machine lost the
// name of the report, ConcludeLost publishes the report again.
func (w *Dir) ConcludeLost() error {
	own, err := w.ownReport()
	if err == nil && own == unpublished {
		_, err = w.PublishReport()
	}
	if err != nil {
		return &PublishedError{Target: w.Target, Dir: w.Path, Kept: true, Err: errors.Join(err, w.Close())}
	}
	return w.Conclude()
}

// Conclude ends the work once the target and its report are published.
func (w *Dir) Conclude() error {
	if err := disk.SyncPath(filepath.Dir(w.Target)); err != nil {
		return &PublishedError{Target: w.Target, Dir: w.Path, Err: errors.Join(err, w.Discard())}
	}
	if err := w.Discard(); err != nil {
		return &PublishedError{Target: w.Target, Dir: w.Path, Synced: true, Err: err}
	}
	return nil
}

// Concluded reports whether a run died after it published its target.
func (w *Dir) Concluded(state *State) bool {
	if !state.proved || state.uploaded {
		return state.uploaded
	}
	_, data := disk.Lstat(w.Data())
	_, target := disk.Lstat(w.Target)
	return errors.Is(data, fs.ErrNotExist) && target == nil
}

// ConcludeEarlier completes a run that died after it had published its target, and reports whether one did. open opens
// its work directory, and read reads the published report. local is true unless the target is in an object store.
func ConcludeEarlier(target string, local bool, open func() (*Dir, *State, error), read func() error) (bool, error) {
	target, dir := filepath.Clean(target), Path(target)
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return false, nil
	}
	if _, err := disk.Lstat(target); err != nil && local {
		return false, nil
	}
	// The target and its report are in place before the first file of the directory is removed.
	if len(entries) == 0 && read() == nil {
		if err := errors.Join(disk.SyncPath(filepath.Dir(dir)), disk.Remove(dir)); err != nil {
			return true, &PublishedError{Target: target, Dir: dir, Err: err}
		}
		return true, nil
	}
	w, state, err := open()
	if err != nil {
		return false, err
	}
	if !w.Concluded(state) {
		return false, w.Close()
	}
	unclean := w.ConcludeLost()
	return true, errors.Join(unclean, read())
}

// Sync makes the target durable before it is published.
func (w *Dir) Sync() error { return syncTree(w.Data()) }

// syncTree syncs a tree: files first, then their directories.
func syncTree(dir string) error {
	var dirs, files []string
	err := disk.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		} else {
			files = append(files, path)
		}
		return err
	})
	if err == nil {
		err = disk.SyncAll(files)
	}
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = disk.SyncPath(dirs[i])
	}
	return err
}

// setAside renames the report of an earlier conversion to the first free number and returns its new path, or "" if
// none exists: dst.kvferry-report.json becomes dst.kvferry-report.1.json.
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
