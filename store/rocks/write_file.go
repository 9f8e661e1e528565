package rocks

import (
	"errors"
	"os"
	"path/filepath"

	"kvferry/internal/disk"
)

// syncer makes files durable beside the workers, which would otherwise wait for the disk after
// every table.
type syncer struct{ slots chan struct{} }

// syncing is a file on its way to the disk. err counts once done is closed.
type syncing struct {
	done chan struct{}
	err  error
}

// start syncs and closes f; in the background while there is a slot.
func (s *syncer) start(f *disk.File) *syncing {
	out := &syncing{done: make(chan struct{})}
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

// wait returns when the file is durable, or will not be. A nil syncing is done.
func (s *syncing) wait() error {
	if s == nil {
		return nil
	}
	<-s.done
	return s.err
}

// writeFile writes a small file and makes it durable.
func writeFile(path string, data []byte) error {
	f, err := disk.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// syncPath makes a file or a directory durable.
func syncPath(elem ...string) error {
	f, err := disk.Open(filepath.Join(elem...))
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
