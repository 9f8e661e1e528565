package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"kvferry/record"
)

// UnfinishedError is the reason why a run ended without a target, and the state of its work.
type UnfinishedError struct {
	Dir    string // work directory
	Resume bool   // the work was to be kept after any failure
	Kept   bool   // the work was kept and can be continued; otherwise Dir was removed
	Stuck  error  // why Dir could not be removed
	Err    error
}

// Error returns the cause, and how to continue.
func (e *UnfinishedError) Error() string {
	text := e.Err.Error()
	var told *fullError
	if isFull(e.Err) && !errors.As(e.Err, &told) {
		text = (&fullError{e.Err}).Error()
	}
	switch {
	case e.CanGoOn():
		text += fmt.Sprintf("; the work so far is kept in %s", e.Dir)
	case e.Stuck != nil:
		text += fmt.Sprintf("; unusable work is left in %s: %v; remove it", e.Dir, e.Stuck)
	case isFull(e.Err):
		text += "; this conversion left nothing behind"
	}
	return text
}

// CanGoOn reports whether the run can be continued.
func (e *UnfinishedError) CanGoOn() bool {
	var cannot *resumeError
	return e.Kept && !errors.As(e.Err, &cannot)
}

// isFull reports whether an error is that a disk has no room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// fullError is an error that isFull reports. It says which disk has no room, and what to do; what was being written does
// not matter to anybody.
type fullError struct{ err error }

// Error describes the disk.
func (e *fullError) Error() string {
	text := e.err.Error()
	var p *fs.PathError
	if errors.As(e.err, &p) && isFull(p) {
		text = p.Error()
	}
	return text + "; free some space or use another disk: the target is built next to its final location, and --temp-dir sets the directory for temporary files"
}

// Unwrap returns the error.
func (e *fullError) Unwrap() error { return e.err }

// Unwrap returns the cause.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// resumeError says why an unfinished run is not continued by this one, and what to do.
type resumeError struct {
	dir string
	err error
}

func (e *resumeError) Error() string {
	return fmt.Sprintf("%s: cannot be resumed: %v; start over with --discard", e.dir, e.err)
}

func (e *resumeError) Unwrap() error { return e.err }

// isBroken reports whether an error is that what lies in a work directory is not what an earlier process left there.
func isBroken(err error, dir string) bool {
	inside := func(path string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }
	var corrupt *record.CorruptError
	if errors.As(err, &corrupt) && inside(corrupt.File) {
		return true
	}
	var p *fs.PathError
	if !errors.As(err, &p) || !inside(p.Path) {
		return false
	}
	for _, cause := range []error{fs.ErrNotExist, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR} {
		if errors.Is(p.Err, cause) {
			return true
		}
	}
	return false
}
