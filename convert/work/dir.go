package work

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/convert/paths"
	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// Dir is the directory beside the target in which a run works:
//
//	<target>.kvferry/journal      what has been done
//	<target>.kvferry/lock         locked by the process that is at work
//	<target>.kvferry/pid          that process
//	<target>.kvferry/data/        the target, until it is published
//	<target>.kvferry/kept/        links to its tables, while they are made a database
//	<target>.kvferry/tmp/         spools, or a link to them when they are to be elsewhere
//	<target>.kvferry/report.json  the report, until it is published
type Dir struct {
	Target string // where the target is to be published
	Path   string // of the work directory
	*journal
}

// Data is where the target is built.
func (w *Dir) Data() string { return filepath.Join(w.Path, "data") }

// Kept is where links to tables are.
func (w *Dir) Kept() string { return filepath.Join(w.Path, "kept") }

// Report is where the report is before it is published.
func (w *Dir) Report() string { return filepath.Join(w.Path, "report.json") }

func (w *Dir) tmp() string { return filepath.Join(w.Path, "tmp") }

// pidFile names the process that works in a directory.
const pidFile = "pid"

// workNames are the names that a work directory can have.
var workNames = []string{"journal", lockFile, pidFile, "data", "data.sections", "kept", "kept" + halfSuffix, "tmp", "report.json", "report.json" + halfSuffix}

// workSuffix is that of work directories.
const workSuffix = ".kvferry"

// halfSuffix is that of what is being made.
const halfSuffix = ".half"

// ReportPath returns the path of the report of a conversion to target.
func ReportPath(target string) string { return filepath.Clean(target) + ".kvferry-report.json" }

// Path returns the path of the work directory of a conversion to target.
func Path(target string) string { return filepath.Clean(target) + workSuffix }

// Open makes the work directory, or takes over an unfinished one when resume is set. temp takes the
// spools; "" keeps them in the work directory.
func Open(target, temp string, resume bool) (*Dir, *State, error) {
	w := &Dir{Target: filepath.Clean(target), Path: Path(target)}
	err := disk.Mkdir(w.Path)
	fresh := err == nil
	if errors.Is(err, fs.ErrExist) {
		err = checkWork(w.Path, resume)
	} else if err != nil {
		err = cannotWork(w.Path, err)
	}
	if err != nil {
		return nil, nil, err
	}
	var state *State
	if w.journal, state, err = openJournal(w.Path); err != nil {
		if fresh {
			err = errors.Join(err, disk.RemoveAll(w.Path))
		}
		return nil, nil, err
	}
	err = disk.WriteFile(filepath.Join(w.Path, pidFile), fmt.Appendln(nil, os.Getpid()))
	if err == nil {
		err = w.makeTemp(temp)
	}
	if err == nil {
		err = disk.SyncPath(filepath.Dir(w.Path))
	}
	switch {
	case err == nil:
		return w, state, nil
	case fresh:
		return nil, nil, &UnfinishedError{Dir: w.Path, Resume: resume, Err: err, Stuck: w.Discard()}
	}
	return nil, nil, &UnfinishedError{Dir: w.Path, Resume: resume, Kept: resume, Err: errors.Join(err, w.Close())}
}

// cannotWork says that no work directory can be made, and what to do.
func cannotWork(dir string, err error) error {
	var p *fs.PathError
	if disk.IsFull(err) || !errors.As(err, &p) {
		return &UnfinishedError{Dir: dir, Err: err}
	}
	return &NoPlaceError{Dir: filepath.Dir(dir), Err: p.Err}
}

// NoPlaceError means that nothing can be made in the directory of the target.
type NoPlaceError struct {
	Dir string
	Err error
}

// Error says what to do.
func (e *NoPlaceError) Error() string {
	return fmt.Sprintf("%s: cannot write to this directory (%v), where the target would be created; choose a writable location", e.Dir, e.Err)
}

// Unwrap returns the cause.
func (e *NoPlaceError) Unwrap() error { return e.Err }

// checkWork refuses a work directory that exists and is somebody else's: another process's, nobody's, or
// that of an unfinished run, unless that is to be continued.
func checkWork(dir string, resume bool) error {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return err
	}
	journal := false
	for _, e := range entries {
		if !slices.Contains(workNames, e.Name()) {
			return fmt.Errorf("%s: needed as the work directory, but not created by kvferry: it has %s in it", dir, e.Name())
		}
		journal = journal || e.Name() == "journal" || e.Name() == lockFile
	}
	if len(entries) > 0 && !journal {
		return fmt.Errorf("%s: needed as the work directory, but not created by kvferry: it has no journal", dir)
	}
	if err := probeWork(dir); err != nil || resume {
		return err
	}
	return fmt.Errorf("%s: left by an unfinished conversion; continue it with --resume, "+
		"or start over with --discard", dir)
}

// makeTemp makes the directory of the spools, in temp unless that is "".
func (w *Dir) makeTemp(temp string) error {
	if err := w.removeTemp(); err != nil {
		return err
	}
	if temp == "" {
		return disk.Mkdir(w.tmp())
	}
	temp, err := paths.Real(temp)
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	dir := filepath.Join(temp, tempPrefix+record.HashBytes([]byte(host + "\x00" + w.Path)).String()[:16])
	// The link comes first: whoever takes over from a run that is killed here finds the directory.
	if err := w.linkTemp(dir); err != nil {
		return err
	}
	// A run for the same target that was killed may have left it; the journal's lock says that none is at work.
	err = disk.RemoveAll(dir)
	if err == nil {
		err = disk.Mkdir(dir)
	}
	if err != nil {
		return errors.Join(err, disk.Remove(w.tmp()))
	}
	return nil
}

// linkTemp notes that the spools are elsewhere: as a symbolic link, or as a file with the path where there are no links, or only
// administrators make them, as on Windows.
func (w *Dir) linkTemp(dir string) error {
	err := disk.Symlink(dir, w.tmp())
	if err != nil && disk.WriteFile(w.tmp(), []byte(dir)) == nil {
		return nil
	}
	return err
}

// elsewhere returns where the spools are, if not in the work directory.
func (w *Dir) elsewhere() (dir string, ok bool) {
	if to, err := disk.Readlink(w.tmp()); err == nil {
		return to, true
	}
	path, err := disk.ReadFile(w.tmp())
	return string(path), err == nil
}

// Spools is the directory of the spools by its own name, which errors then have.
func (w *Dir) Spools() string {
	if to, ok := w.elsewhere(); ok {
		return to
	}
	return w.tmp()
}

// tempPrefix begins the names of directories of spools outside of work directories.
const tempPrefix = "kvferry-convert-"

// removeTemp removes the spools, wherever they are.
func (w *Dir) removeTemp() error {
	if to, ok := w.elsewhere(); ok && strings.HasPrefix(filepath.Base(to), tempPrefix) {
		if err := disk.RemoveAll(to); err != nil {
			return err
		}
	}
	return disk.RemoveAll(w.tmp())
}

// Clear removes everything but the journal, which it empties, to start over.
func (w *Dir) Clear() error {
	return errors.Join(w.reset(), disk.RemoveAll(w.Data()), disk.RemoveAll(w.Kept()), disk.RemoveAll(w.Report()))
}

// Discard ends the work and leaves nothing. The journal goes last: a run that dies in between leaves a
// directory that is still known for kvferry's.
func (w *Dir) Discard() error {
	err := errors.Join(w.removeTemp(), w.Close())
	for _, name := range workNames {
		if name != "journal" {
			err = errors.Join(err, disk.RemoveAll(filepath.Join(w.Path, name)))
		}
	}
	return errors.Join(err, disk.RemoveAll(w.Path))
}

// Drop removes what an unfinished run left, whatever state it is in.
func Drop(target string) error {
	w := &Dir{Target: filepath.Clean(target), Path: Path(target)}
	if _, err := disk.Lstat(w.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := checkWork(w.Path, true); err != nil {
		return err
	}
	return errors.Join(w.WithdrawOrphan(), w.removeTemp(), disk.RemoveAll(w.Path))
}

// Keep links the unfinished tables aside, so that dying while they are made a database costs
// nothing: their names are what changes then, not their bytes. On a file system without hard links
// nothing is kept, and a run that dies in that moment starts over. The links go with the work: Windows removes none
// while the database is read back.
func (w *Dir) Keep() error {
	half := w.Kept() + halfSuffix
	if err := disk.RemoveAll(half); err != nil {
		return err
	}
	if err := linkTree(w.Data(), half); err != nil {
		return disk.RemoveAll(half)
	}
	return errors.Join(disk.Rename(half, w.Kept()), disk.SyncPath(w.Path))
}

// Restore brings kept tables back and reports whether there were any.
func (w *Dir) Restore() (bool, error) {
	if _, err := disk.Stat(w.Kept()); err != nil {
		return false, nil
	}
	if err := disk.RemoveAll(w.Data()); err != nil {
		return false, err
	}
	return true, disk.Rename(w.Kept(), w.Data())
}

// linkTree makes dst a copy of src whose files are hard links.
func linkTree(src, dst string) error {
	return disk.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return disk.Mkdir(filepath.Join(dst, rel))
		}
		return disk.Link(path, filepath.Join(dst, rel))
	})
}
