package rocksfile

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// tableFile is the file of a table being written. The table writer hands over every block and
// every block trailer by itself; they are gathered, since a system call for each would cost more
// than compressing them.
type tableFile struct {
	f     *os.File
	pool  *sync.Pool // of *[]byte
	buf   *[]byte    // nil until the first write: runs that wait hold no memory
	limit int
	size  int64   // bytes handed over
	sync  *syncer // nil: not made durable here
	done  *syncing
	err   error
}

// Write gathers p.
func (t *tableFile) Write(p []byte) error {
	if t.err != nil {
		return t.err
	}
	if t.buf == nil {
		t.buf = t.pool.Get().(*[]byte)
	}
	t.size += int64(len(p))
	if len(*t.buf)+len(p) > t.limit {
		if err := t.flush(); err != nil {
			return err
		}
		if len(p) >= t.limit {
			return t.write(p)
		}
	}
	*t.buf = append(*t.buf, p...)
	return nil
}

func (t *tableFile) flush() error {
	if t.buf == nil || len(*t.buf) == 0 {
		return nil
	}
	err := t.write(*t.buf)
	*t.buf = (*t.buf)[:0]
	return err
}

func (t *tableFile) write(p []byte) error {
	if _, err := t.f.Write(p); err != nil {
		t.err = err
	}
	return t.err
}

// Finish writes out and closes the file. Making it durable goes on in the background.
func (t *tableFile) Finish() error {
	err := t.flush()
	t.release()
	f := t.f
	t.f = nil
	if err == nil && t.sync != nil {
		t.done = t.sync.start(f)
		return nil
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Abort closes the file as it is.
func (t *tableFile) Abort() {
	t.release()
	if t.f != nil {
		t.f.Close()
		t.f = nil
	}
}

func (t *tableFile) release() {
	if t.buf != nil {
		*t.buf = (*t.buf)[:0]
		t.pool.Put(t.buf)
		t.buf = nil
	}
}

// syncer makes files durable beside the workers, which would otherwise wait for the disk after
// every table.
type syncer struct{ slots chan struct{} }

// syncing is a file on its way to the disk. err counts once done is closed.
type syncing struct {
	done chan struct{}
	err  error
}

// start syncs and closes f; in the background while there is a slot.
func (s *syncer) start(f *os.File) *syncing {
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
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
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
	f, err := os.Open(filepath.Join(elem...))
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
