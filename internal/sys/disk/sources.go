package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// Sources detects changes of the files that a dataset is read from. Readers return to a file or read several files of
// one state. If a file is written in between, they get parts of two states, and all checksums may still match. A nil
// Sources only opens files.
type Sources struct {
	mu       sync.Mutex
	files    map[string]*sourceFile
	changed  *ChangedError // the first change seen
	replaced func(path string)
}

// sourceFile is the state of a file when it was first opened.
type sourceFile struct {
	was  fs.FileInfo
	held *File // the open handle that reads the whole file; nil if closed, or if several handles read it
	// whole is true if a single handle reads the file: replacing the file at its path does not affect that handle.
	whole, told bool
}

// ChangedError means that a file of a source was written while it was read.
type ChangedError struct{ Path, How string }

// Error describes the change and the remedy.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: %s while kvferry read it, so the data read may mix two states: "+
		"stop the program that writes to it, or read a copy or snapshot, and run this again", e.Path, e.How)
}

// OnReplaced sets a function that Check calls once for each file that was read completely, but was replaced at its
// path since.
func (s *Sources) OnReplaced(f func(path string)) {
	if s != nil {
		s.replaced = f
	}
}

// Open opens a file that may be opened repeatedly.
func (s *Sources) Open(path string) (*File, error) { return s.open(path, false) }

// OpenWhole opens a file that only this handle reads. The file may be replaced at its path: servers replace their
// snapshots.
func (s *Sources) OpenWhole(path string) (*File, error) { return s.open(path, true) }

func (s *Sources) open(path string, whole bool) (*File, error) {
	f, err := Open(path)
	if err != nil || s == nil {
		return f, err
	}
	st, err := f.Stat()
	if err == nil {
		err = s.add(path, st, whole, f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Add records the state of a file. It returns an error if the file has changed since its state was first recorded.
func (s *Sources) Add(path string, st fs.FileInfo) error {
	if s == nil {
		return nil
	}
	return s.add(path, st, false, nil)
}

// AddWhole is Add for a file that OpenWhole opens later, or that was read at once.
func (s *Sources) AddWhole(path string, st fs.FileInfo) error {
	if s == nil {
		return nil
	}
	return s.add(path, st, true, nil)
}

func (s *Sources) add(path string, st fs.FileInfo, whole bool, f *File) error {
	if !st.Mode().IsRegular() { // a pipe or device has no state to compare
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.files[path]; known != nil {
		if how := difference(known.was, st); how != "" {
			return s.fail(path, how)
		}
	} else {
		if s.files == nil {
			s.files = map[string]*sourceFile{}
		}
		s.files[path] = &sourceFile{was: st, whole: whole}
	}
	if whole && f != nil {
		s.files[path].held = f
		f.source = s
	}
	return nil
}

// fail records the first change. s.mu must be held.
func (s *Sources) fail(path, how string) error {
	if s.changed == nil {
		s.changed = &ChangedError{path, how}
	}
	return s.changed
}

// Fail reports a change that a reader noticed by itself.
func (s *Sources) Fail(path, how string) error {
	if s == nil {
		return &ChangedError{path, how}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fail(path, how)
}

// closing checks a file for the last time, through the handle that read it.
func (s *Sources) closing(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.files[f.Name()]; x != nil && x.held == f {
		x.held = nil
		if st, err := f.Stat(); err == nil {
			if how := difference(x.was, st); how != "" {
				_ = s.fail(f.Name(), how) // reported by Check
			}
		}
	}
}

// Check returns a *ChangedError if a file has changed since it was opened.
func (s *Sources) Check() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		return s.changed
	}
	look := statNow()
	for path, f := range s.files {
		if err := s.check(path, f, look); err != nil {
			return err
		}
	}
	return nil
}

// check checks one file. s.mu must be held.
func (s *Sources) check(path string, f *sourceFile, stat func(string) (fs.FileInfo, error)) error {
	if f.held != nil {
		st, err := f.held.Stat()
		if err != nil {
			return err
		}
		if how := difference(f.was, st); how != "" {
			return s.fail(path, how)
		}
	}
	st, err := stat(path)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !gone:
		return err
	case !gone && (!f.whole || SameFile(f.was, st)):
		if how := difference(f.was, st); how != "" {
			return s.fail(path, how)
		}
	case !f.whole:
		return s.fail(path, "it was removed")
	case !f.told && s.replaced != nil:
		f.told = true
		s.replaced(path)
	}
	return nil
}

// Err returns the final error of a pass over the source: a change of a file, else err. Other errors may be
// consequences of a change.
func (s *Sources) Err(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if changed := s.Check(); changed != nil && (err == nil || errors.As(changed, new(*ChangedError))) {
		return changed
	}
	return err
}

// difference describes the change of a file; "" if it did not change. A copy with the same size and modification time
// counts as unchanged.
func difference(was, is fs.FileInfo) string {
	switch {
	case was.Size() != is.Size():
		return fmt.Sprintf("its size changed from %d to %d bytes", was.Size(), is.Size())
	case Version(was) != Version(is):
		return fmt.Sprintf("it was replaced (its version was %s, is %s)", Version(was), Version(is))
	case Version(was) == "" && !was.ModTime().Equal(is.ModTime()): // a version says all
		return "it was written to"
	case Touched(was, is):
		return "it was written to, or its attributes were changed,"
	}
	return ""
}

// Touched reports whether a file was written to, or its attributes were changed, by its ctime. Without a ctime, and for
// different files, it is false.
func Touched(was, is fs.FileInfo) bool { return SameFile(was, is) && touched(was, is) }
