package work

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/record"
)

// Dir is the directory beside the target in which a run works:
//
//	<target>.kvferry/journal      finished steps, see the package comment
//	<target>.kvferry/lock         locked by the process that uses the directory
//	<target>.kvferry/pid          id of that process
//	<target>.kvferry/data/        the target, until it is published
//	<target>.kvferry/kept/        links to its tables while they become a database
//	<target>.kvferry/tmp/         spools, or a link to them if they are elsewhere
//	<target>.kvferry/report.json  the report, until it is published
//	<target>.kvferry/plan         of a run in parts, see Parts
//	<target>.kvferry/parts/
type Dir struct {
	Target string // final path of the target
	Path   string // of the work directory
	spools string // of a process that only reads the target; "": see elsewhere
	*journal
}

// Data is the directory that the target is built in.
func (w *Dir) Data() string { return filepath.Join(w.Path, "data") }

// Kept is the directory of the links to tables, see Keep.
func (w *Dir) Kept() string { return filepath.Join(w.Path, "kept") }

// Report is the path of the report before it is published.
func (w *Dir) Report() string { return filepath.Join(w.Path, reportFile) }

func (w *Dir) tmp() string { return filepath.Join(w.Path, "tmp") }

// pidFile holds the id of the process that holds the lock.
const pidFile = "pid"

// workNames are the possible names of entries in a work directory.
var workNames = []string{journalFile, lockFile, pidFile, "data", "data.sections", "kept", "kept" + halfSuffix, "tmp", reportFile,
	reportFile + halfSuffix, planFile, partsDir}

// workSuffix ends the names of work directories.
const workSuffix = ".kvferry"

// halfSuffix ends the names of incomplete files and directories.
const halfSuffix = ".half"

// reportFile is the name of an unpublished report, and of that of a finished part.
const reportFile = "report.json"

// ReportPath returns the path of the report of a conversion to target.
func ReportPath(target string) string { return filepath.Clean(target) + object.ReportEnding }

// partReport matches the path of the report of a finished part.
var partReport = regexp.MustCompile(`\.kvferry/` + partsDir + `/[0-9]+-of-[0-9]+/report\.json$`)

// IsReport reports whether a path is that of the report of a conversion or of a finished part.
func IsReport(path string) bool {
	return strings.HasSuffix(path, object.ReportEnding) || partReport.MatchString(filepath.ToSlash(path))
}

// Path returns the path of the work directory of a conversion to target.
func Path(target string) string { return filepath.Clean(target) + workSuffix }

// IsWork reports whether a path has the name of a work directory.
func IsWork(path string) bool { return strings.HasSuffix(path, workSuffix) }

// IsUnfinished reports whether a path leads to the work directory of an unfinished run.
func IsUnfinished(path string) bool {
	if !IsWork(path) {
		return false
	}
	_, err := disk.Lstat(disk.Join(path, journalFile))
	return err == nil
}

// Open makes the work directory, or takes over an unfinished one if resume is set. temp is the directory for spools;
// "" keeps them in the work directory.
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
	return w.begin(temp, fresh, resume, false)
}

// begin opens the journal of a work directory and makes the directory of the spools. A fresh
// directory is removed after an error. lax permits a file system without locks.
func (w *Dir) begin(temp string, fresh, resume, lax bool) (_ *Dir, state *State, err error) {
	if w.journal, state, err = openJournal(w.Path, lax); err != nil {
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

// cannotWork turns an error of making the work directory into one that explains it.
func cannotWork(dir string, err error) error {
	var p *fs.PathError
	if disk.IsFull(err) || !errors.As(err, &p) {
		return &UnfinishedError{Dir: dir, Err: err}
	}
	return &NoPlaceError{Dir: filepath.Dir(dir), Err: p.Err}
}

// NoPlaceError means that the directory of the target cannot be written.
type NoPlaceError struct {
	Dir string
	Err error
}

// Error describes the problem and its solution.
func (e *NoPlaceError) Error() string {
	return fmt.Sprintf("%s: cannot write to this directory (%v), where the target would be created; choose a writable location",
		e.Dir, e.Err)
}

// Unwrap returns the cause.
func (e *NoPlaceError) Unwrap() error { return e.Err }

// signs are the names of which one is in every work directory that has any.
var signs = []string{journalFile, lockFile, partsDir}

// checkWork refuses an existing work directory if another process uses it, if kvferry did not create it, or, without
// resume, if an unfinished run left it.
func checkWork(dir string, resume bool) error {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return err
	}
	journal := false
	for _, e := range entries {
		if !slices.Contains(workNames, e.Name()) {
			return fmt.Errorf("%s: needed as the work directory, but not created by kvferry: it contains %s", dir, e.Name())
		}
		journal = journal || slices.Contains(signs, e.Name())
	}
	if len(entries) > 0 && !journal {
		return fmt.Errorf("%s: needed as the work directory, but not created by kvferry: it has no journal", dir)
	}
	if err := probeWork(dir); err != nil || resume {
		return err
	}
	return &LeftError{dir}
}

// LeftError means that an unfinished conversion left its work directory.
type LeftError struct{ Dir string }

// Error says how to go on.
func (e *LeftError) Error() string {
	return e.Dir + ": left by an unfinished conversion; continue it with --resume, or start over with --discard"
}

// makeTemp makes the directory of the spools, in temp unless that is "".
func (w *Dir) makeTemp(temp string) error {
	if err := w.removeTemp(); err != nil {
		return err
	}
	if temp == "" {
		return disk.Mkdir(w.tmp())
	}
	temp, err := Real(temp)
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	dir := filepath.Join(temp, tempPrefix+record.HashBytes([]byte(host + "\x00" + w.Path)).String()[:16])
	// Link first: if this process is killed in between, its successor finds the directory.
	if err := w.linkTemp(dir); err != nil {
		return err
	}
	// A killed run for the same target may have left the directory. The journal's lock guarantees that no process
	// uses it.
	err = disk.RemoveAll(dir)
	if err == nil {
		err = disk.Mkdir(dir)
	}
	if err != nil {
		return errors.Join(err, disk.Remove(w.tmp()))
	}
	return nil
}

// linkTemp records the location of the spools: as a symbolic link, or as a file with the path if links are not
// supported or need administrator rights, as on Windows.
func (w *Dir) linkTemp(dir string) error {
	err := disk.Symlink(dir, w.tmp())
	if err != nil && disk.WriteFile(w.tmp(), []byte(dir)) == nil {
		return nil
	}
	return err
}

// elsewhere returns the directory of the spools if it is outside the work directory.
func (w *Dir) elsewhere() (dir string, ok bool) {
	if to, err := disk.Readlink(w.tmp()); err == nil {
		return to, true
	}
	path, err := disk.ReadFile(w.tmp())
	return string(path), err == nil
}

// Spools returns the real path of the spools' directory, so that errors show that and not the link.
func (w *Dir) Spools() string {
	if w.spools != "" {
		return w.spools
	}
	if to, ok := w.elsewhere(); ok {
		return to
	}
	return w.tmp()
}

// tempPrefix begins the names of spool directories outside work directories. removeTemp removes no other directory.
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

// Clear empties the journal and removes everything else, to start over.
func (w *Dir) Clear() error {
	return errors.Join(w.reset(), disk.RemoveAll(w.Data()), disk.RemoveAll(w.Kept()), disk.RemoveAll(w.Report()))
}

// Discard ends the work and removes its directory. The journal goes last: if the process dies in between, the
// directory is still recognized as kvferry's.
func (w *Dir) Discard() error {
	err := errors.Join(w.removeTemp(), w.Close())
	for _, name := range workNames {
		if name != journalFile {
			err = errors.Join(err, disk.RemoveAll(filepath.Join(w.Path, name)))
		}
	}
	return errors.Join(err, disk.RemoveAll(w.Path))
}

// Drop removes the work of an unfinished run, in any state.
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

// Keep hard-links the unfinished tables to a second directory before they become a database. That changes their names
// but not their bytes, so a process that dies during that step loses no table. On a file system without hard links
// Keep does nothing, and such a run starts over. The links stay until the work ends: Windows cannot remove them while
// the database is read back.
func (w *Dir) Keep() error {
	half := w.Kept() + halfSuffix
	if err := disk.RemoveAll(half); err != nil {
		return err
	}
	if err := linkTree(w.Data(), half); err != nil {
		return disk.RemoveAll(half)
	}
	if err := syncDirs(half); err != nil { // after a crash a directory named kept is complete
		return err
	}
	return errors.Join(disk.Rename(half, w.Kept()), disk.SyncPath(w.Path))
}

// Restore moves kept tables back and reports whether it found any.
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
