package state

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
)

// storeFailure is the first error of the store's background work, for which no caller waits. Pebble exits the
// process if it cannot write its MANIFEST, and retries the write of a table forever: on a full disk the
// program would die or hang without a message. So after the first error all writes are dropped: Pebble
// continues as if there were room, and each command returns the error.
type storeFailure struct{ err atomic.Pointer[error] }

func (f *storeFailure) set(err error) {
	if err != nil {
		f.err.CompareAndSwap(nil, &err)
	}
}

// Get returns the failure, if any.
func (f *storeFailure) Get() error {
	if e := f.err.Load(); e != nil {
		return *e
	}
	return nil
}

// listener records errors that no write returns, such as a failed read in a compaction.
func (f *storeFailure) listener() *pebble.EventListener {
	return &pebble.EventListener{BackgroundError: f.set}
}

// spillFS is a file system whose writes do not fail; its failure records the first error.
type spillFS struct {
	vfs.FS
	F *storeFailure
}

// try calls do, unless an earlier failure made it pointless.
func (f *storeFailure) try(do func() error) {
	if f.Get() == nil {
		f.set(do())
	}
}

func (s spillFS) Create(name string) (vfs.File, error) { return s.made(s.FS.Create(name)) }

func (s spillFS) ReuseForWrite(old, name string) (vfs.File, error) {
	return s.made(s.FS.ReuseForWrite(old, name))
}

func (s spillFS) OpenDir(name string) (vfs.File, error) { return s.made(s.FS.OpenDir(name)) }

// made wraps a file opened for writing; if it could not be created, an in-memory file replaces it.
func (s spillFS) made(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		s.F.set(err)
		if file, err = vfs.NewMem().Create("dropped"); err != nil {
			return nil, err
		}
	}
	return failingFile{file, s.F}, nil
}

// Open returns the failure, if any, instead of looking for a file whose writes may have been dropped: Pebble
// exits the process if a file is missing.
func (s spillFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := s.F.Get(); err != nil {
		return nil, err
	}
	return s.FS.Open(name, opts...)
}

func (s spillFS) Link(old, name string) error {
	s.F.try(func() error { return s.FS.Link(old, name) })
	return nil
}

func (s spillFS) Rename(old, name string) error {
	s.F.try(func() error { return s.FS.Rename(old, name) })
	return nil
}

type failingFile struct {
	vfs.File
	f *storeFailure
}

func (x failingFile) Write(b []byte) (int, error) {
	x.f.try(func() error {
		_, err := x.File.Write(b)
		return err
	})
	return len(b), nil
}

func (x failingFile) WriteAt(b []byte, off int64) (int, error) {
	x.f.try(func() error {
		_, err := x.File.WriteAt(b, off)
		return err
	})
	return len(b), nil
}

func (x failingFile) Preallocate(off, n int64) error {
	x.f.try(func() error { return x.File.Preallocate(off, n) })
	return nil
}

func (x failingFile) Sync() error {
	x.f.try(x.File.Sync)
	return nil
}

func (x failingFile) SyncData() error {
	x.f.try(x.File.SyncData)
	return nil
}

func (x failingFile) SyncTo(n int64) (full bool, err error) {
	x.f.try(func() error {
		full, err = x.File.SyncTo(n)
		return err
	})
	return full, nil
}
