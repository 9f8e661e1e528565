package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Sources remembers the files that a dataset is read from, as they were when they were opened. Readers return to a file, or
// read several files of one state: a file that is written to meanwhile gives half of one state and half of another, and every
// checksum in it may hold. All methods of a nil Sources do nothing but open files.
type Sources struct {
	mu       sync.Mutex
	files    map[string]*sourceFile
	changed  *ChangedError // the first that was seen
	replaced func(path string)
}

// sourceFile is a file as it was when it was first opened.
type sourceFile struct {
	was  fs.FileInfo
	held *File // an open handle that all is read by; nil when it is closed, or when others are opened
	// whole is true for a file that one handle reads: another file at its path does not change what is read.
	whole, told bool
}

// ChangedError means that a file of a source was written to while it was read.
type ChangedError struct{ Path, How string }

// Error says what to do.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: %s while kvferry read it, so what was read may be half of one state and half of another: "+
		"stop what writes to it, or take a copy or snapshot and read that, and run this again", e.Path, e.How)
}

// OnReplaced has f called with the path of each file that was read as it was, but has made room for another one since.
func (s *Sources) OnReplaced(f func(path string)) {
	if s != nil {
		s.replaced = f
	}
}

// Open opens a file of which several handles may be opened, one after the other.
func (s *Sources) Open(path string) (*File, error) { return s.open(path, false) }

// OpenWhole opens a file that is read by this handle alone. Another file may take its place: servers replace their snapshots.
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

// Add remembers a file that was looked at. It is an error if the file is not as it was before.
func (s *Sources) Add(path string, st fs.FileInfo) error {
	if s == nil {
		return nil
	}
	return s.add(path, st, false, nil)
}

// AddWhole is Add of a file that OpenWhole opens later, or that was read at once.
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

// fail keeps the first change. s.mu is held.
func (s *Sources) fail(path, how string) error {
	if s.changed == nil {
		s.changed = &ChangedError{path, how}
	}
	return s.changed
}

// Fail says that a file changed, as its reader noticed.
func (s *Sources) Fail(path, how string) error {
	if s == nil {
		return &ChangedError{path, how}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fail(path, how)
}

// closing looks at a file a last time by the handle that it was read by.
func (s *Sources) closing(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.files[f.Name()]; x != nil && x.held == f {
		x.held = nil
		if st, err := f.Stat(); err == nil {
			if how := difference(x.was, st); how != "" {
				_ = s.fail(f.Name(), how) // Check returns it
			}
		}
	}
}

// Check returns a *ChangedError if a file is not as it was when it was opened.
func (s *Sources) Check() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		return s.changed
	}
	for path, f := range s.files {
		if err := s.check(path, f); err != nil {
			return err
		}
	}
	return nil
}

// check looks at one file. s.mu is held.
func (s *Sources) check(path string, f *sourceFile) error {
	if f.held != nil {
		st, err := f.held.Stat()
		if err != nil {
			return err
		}
		if how := difference(f.was, st); how != "" {
			return s.fail(path, how)
		}
	}
	st, err := Stat(path)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !gone:
		return err
	case !gone && (!f.whole || os.SameFile(f.was, st)):
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

// Err returns the error of a pass over the source: err, unless a file changed. Whatever else is wrong may follow from that.
func (s *Sources) Err(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if changed := s.Check(); changed != nil && (err == nil || errors.As(changed, new(*ChangedError))) {
		return changed
	}
	return err
}

// difference says how a file changed; "" if it did not. A copy of it with the same size and time is as good as it.
func difference(was, is fs.FileInfo) string {
	switch {
	case was.Size() != is.Size():
		return fmt.Sprintf("its size changed from %d to %d bytes", was.Size(), is.Size())
	case !was.ModTime().Equal(is.ModTime()):
		return "it was written to"
	case os.SameFile(was, is) && touched(was, is):
		return "it was written to, or its attributes were changed,"
	}
	return ""
}
