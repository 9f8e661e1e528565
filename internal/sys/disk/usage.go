package disk

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Usage counts the bytes that files made below a directory hold until they are closed, as spools are. It is safe for
// concurrent use.
type Usage struct {
	dir  string
	now  atomic.Int64
	peak atomic.Int64
}

var (
	watching sync.Mutex
	usages   atomic.Pointer[[]*Usage]
)

// Watch begins to count what is made below a directory. Stop ends it.
func Watch(dir string) *Usage {
	u := &Usage{dir: filepath.Clean(dir) + string(filepath.Separator)}
	change(func(list []*Usage) []*Usage { return append(list, u) })
	return u
}

// Stop makes new files count no more.
func (u *Usage) Stop() {
	change(func(list []*Usage) []*Usage {
		return slices.DeleteFunc(list, func(other *Usage) bool { return other == u })
	})
}

// change replaces the list of those that count.
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

// Now is what is held, Peak the most that was at once.
func (u *Usage) Now() int64  { return u.now.Load() }
func (u *Usage) Peak() int64 { return u.peak.Load() }

// Reset makes what is held now the peak.
func (u *Usage) Reset() { u.peak.Store(u.now.Load()) }

// usageOf returns those that count a file that is being made.
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

// grow counts n bytes more or less of a file.
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
