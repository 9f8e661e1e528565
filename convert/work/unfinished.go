package work

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// UnfinishedError is the reason why a run ended without a target, and the state of its work.
type UnfinishedError struct {
	Dir    string // work directory
	Resume bool   // --resume was given, which keeps the work after any failure
	Kept   bool   // the work was kept and can be continued; otherwise Dir was removed
	Stuck  error  // why Dir could not be removed
	Err    error
}

// Error returns the cause, and how to continue.
func (e *UnfinishedError) Error() string {
	text := e.Err.Error()
	var told *FullError
	if disk.IsFull(e.Err) && !errors.As(e.Err, &told) {
		text = (&FullError{Err: e.Err}).Error()
	}
	switch {
	case e.CanGoOn():
		text += fmt.Sprintf("; the work so far is kept in %s", e.Dir)
	case e.Stuck != nil:
		text += fmt.Sprintf("; unusable work is left in %s: %v; remove it", e.Dir, e.Stuck)
	case disk.IsFull(e.Err):
		text += "; this conversion left no files behind"
	}
	return text
}

// Unwrap returns the cause.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// CanGoOn reports whether the run can be resumed.
func (e *UnfinishedError) CanGoOn() bool {
	var cannot *ResumeError
	return e.Kept && !errors.As(e.Err, &cannot)
}

// FullError wraps an error of a full disk. Its text names the disk and the remedy, and omits the operation that
// failed.
type FullError struct{ Err error }

// Error describes the disk.
func (e *FullError) Error() string {
	text := e.Err.Error()
	var p *fs.PathError
	if errors.As(e.Err, &p) && disk.IsFull(p) {
		text = p.Error()
	}
	return text + "; free some space or use another disk: the target is built next to its final location, and --temp-dir sets the directory for temporary files"
}

// Unwrap returns the error.
func (e *FullError) Unwrap() error { return e.Err }

// MissingError means that a target cannot be finished, because parts of it are missing.
type MissingError struct {
	Target  string
	Missing []int
	Parts   int // 0: no part has begun, so their number is unknown
	// Assemble is true if the target is not assembled, as a proof of it in parts needs.
	Assemble bool
	// Proofs is true if the parts are those of the proof.
	Proofs bool
}

// Error counts the missing parts.
func (e *MissingError) Error() string {
	switch {
	case e.Assemble:
		return e.Target + ": it is not assembled yet"
	case e.Parts == 0:
		return e.Target + ": no part of it has run"
	}
	of := "parts"
	if e.Proofs {
		of = "parts of the proof"
	}
	return fmt.Sprintf("%s: %d of %d %s are missing", e.Target, len(e.Missing), e.Parts, of)
}

// ResumeError means that the unfinished run in Dir cannot be resumed.
type ResumeError struct {
	Dir   string
	Parts bool // it is a run in parts
	Err   error
}

// Error gives the reason and the remedy.
func (e *ResumeError) Error() string {
	if e.Parts {
		return fmt.Sprintf("%s: belongs to other parts: %v; to start over, remove it once no part is running, and run all parts again",
			e.Dir, e.Err)
	}
	return fmt.Sprintf("%s: cannot be resumed: %v; start over with --discard", e.Dir, e.Err)
}

// Unwrap returns the reason.
func (e *ResumeError) Unwrap() error { return e.Err }

// IsBroken reports whether err shows that the files in a work directory differ from those an earlier process left:
// one is corrupt, missing or of another type.
func IsBroken(err error, dir string) bool {
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
