package disk

import (
	"path/filepath"
	"sync/atomic"
)

// Space is what a file system has left for this user.
type Space struct {
	Free   int64
	Device uint64 // tells file systems apart
}

var fakeSpace atomic.Pointer[func(path string) (Space, error)]

// FakeSpace makes FreeSpace answer with f until restore is called. Only tests use it.
func FakeSpace(f func(path string) (Space, error)) (restore func()) {
	fakeSpace.Store(&f)
	return func() { fakeSpace.Store(nil) }
}

// FreeSpace says how much room there is at a directory.
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
