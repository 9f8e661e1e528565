package disk

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Usage counts the bytes of open files created below a directory, such as spools. It is safe for concurrent use.
type Usage struct {
	dir  string
	now  atomic.Int64
	peak atomic.Int64
}

var (
	watching sync.Mutex
	usages   atomic.Pointer[[]*Usage]
)

// Watch starts to count new files below a directory, until Stop.
func Watch(dir string) *Usage {
	u := &Usage{dir: filepath.Clean(dir) + string(filepath.Separator)}
	change(func(list []*Usage) []*Usage { return append(list, u) })
	return u
}

// Stop excludes new files. Open ones still count.
func (u *Usage) Stop() {
	change(func(list []*Usage) []*Usage {
		return slices.DeleteFunc(list, func(other *Usage) bool { return other == u })
	})
}

// change replaces the list of active counters.
func change(by func([]*Usage) []*Usage) {
	watching.Lock()
	defer watching.Unlock()
	var list []*Usage
	if old := usages.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = by(list)
	usages.Store(&list)
}

// Now returns the current size, Peak the maximum.
func (u *Usage) Now() int64  { return u.now.Load() }
func (u *Usage) Peak() int64 { return u.peak.Load() }

// Reset sets the peak to the current size.
func (u *Usage) Reset() { u.peak.Store(u.now.Load()) }

// usageOf returns the counters of a new file.
func usageOf(path string) (out []*Usage) {
	list := usages.Load()
	if list == nil {
		return nil
	}
	for _, u := range *list {
		if strings.HasPrefix(path, u.dir) {
			out = append(out, u)
		}
	}
	return out
}

// grow adds n bytes, which may be negative, to the counters of a file.
func (f *File) grow(n int64) {
	if len(f.usage) == 0 {
		return
	}
	f.held.Add(n)
	for _, u := range f.usage {
		now := u.now.Add(n)
		for peak := u.peak.Load(); now > peak && !u.peak.CompareAndSwap(peak, now); peak = u.peak.Load() {
		}
	}
}
