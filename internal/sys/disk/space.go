package disk

import (
	"path/filepath"
	"sync/atomic"
)

// Space is the free space of a file system for this user.
type Space struct {
	Free   int64
	Device uint64 // identifies the file system
}

var fakeSpace atomic.Pointer[func(path string) (Space, error)]

// FakeSpace makes FreeSpace call f until restore is called. It is for tests.
func FakeSpace(f func(path string) (Space, error)) (restore func()) {
	fakeSpace.Store(&f)
	return func() { fakeSpace.Store(nil) }
}

// FreeSpace returns the free space at a directory.
func FreeSpace(dir string) (Space, error) {
	if f := fakeSpace.Load(); f != nil {
		return (*f)(dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Space{}, err
	}
	return freeSpace(dir)
}
