package disk

import (
	"cmp"
	"errors"
	"os"

	"kvferry/internal/sys/pace"
)

// Syncer syncs files in the background, so that their writers do not wait for the disk after each file.
type Syncer struct{ slots chan struct{} }

// NewSyncer returns a Syncer that syncs up to files files at once.
func NewSyncer(files int) *Syncer { return &Syncer{make(chan struct{}, files)} }

// Syncing is a file being synced. err is valid once done is closed.
type Syncing struct {
	done chan struct{}
	err  error
}

// Start syncs and closes f, in the background if a slot is free.
func (s *Syncer) Start(f *File) *Syncing {
	out := &Syncing{done: make(chan struct{})}
	finish := func() {
		defer close(out.done)
		out.err = errors.Join(f.Sync(), f.Close())
	}
	select {
	case s.slots <- struct{}{}:
		go func() {
			finish()
			<-s.slots
		}()
	default:
		finish()
	}
	return out
}

// Wait waits until the file is durable or syncing has failed. A nil Syncing returns nil at once.
func (s *Syncing) Wait() error {
	if s == nil {
		return nil
	}
	<-s.done
	return s.err
}

// syncsAtOnce is the number of files to sync in parallel. Disks handle that in about the time of one.
const syncsAtOnce = 4

// SyncAll syncs files, several in parallel.
func SyncAll(paths []string) error {
	return pace.Each(len(paths), syncsAtOnce, func(i int) error { return SyncPath(paths[i]) })
}

// DropCached syncs files and drops their pages from the page cache, several files in parallel, so that later reads come
// from the disk. why is the reason if pages may remain. Files on a file system in memory stay in memory.
func DropCached(paths []string) (why string, err error) {
	reasons := make([]string, len(paths))
	err = pace.Each(len(paths), syncsAtOnce, func(i int) (err error) {
		f, err := OpenFile(paths[i], os.O_RDWR, 0) // Windows syncs only files that are open for writing
		if err != nil {
			return err
		}
		if err = f.Sync(); err == nil {
			if refused := check("drop", paths[i]); refused != nil {
				reasons[i] = refused.Error()
			} else {
				reasons[i] = dropCached(f.f)
			}
		}
		return errors.Join(err, f.Close())
	})
	return cmp.Or(reasons...), err
}
