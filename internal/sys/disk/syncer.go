package disk

import (
	"errors"
	"kvferry/internal/sys/parallel"
)

// Syncer makes files durable beside those who write them, and would otherwise wait for the disk after each.
type Syncer struct{ slots chan struct{} }

// NewSyncer returns a Syncer of as many files at once.
func NewSyncer(files int) *Syncer { return &Syncer{make(chan struct{}, files)} }

// Syncing is a file on its way to the disk. err counts once done is closed.
type Syncing struct {
	done chan struct{}
	err  error
}

// Start syncs and closes f; in the background while there is a slot.
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

// Wait returns when the file is durable, or will not be. A nil Syncing is done.
func (s *Syncing) Wait() error {
	if s == nil {
		return nil
	}
	<-s.done
	return s.err
}

// syncsAtOnce is how many files are synced at the same time, which disks do together.
const syncsAtOnce = 4

// SyncAll syncs files, some at once.
func SyncAll(paths []string) error {
	return parallel.Each(len(paths), syncsAtOnce, func(i int) error { return SyncPath(paths[i]) })
}
