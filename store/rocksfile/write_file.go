package rocksfile

import (
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
	size  int64 // bytes handed over
	sync  bool
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

// Finish writes out and closes the file, synced when the builder asks for it.
func (t *tableFile) Finish() error {
	err := t.flush()
	if err == nil && t.sync {
		err = t.f.Sync()
	}
	if cerr := t.close(); err == nil {
		err = cerr
	}
	return err
}

// Abort closes the file as it is.
func (t *tableFile) Abort() { t.close() }

func (t *tableFile) close() error {
	if t.f == nil {
		return nil
	}
	err := t.f.Close()
	t.f = nil
	if t.buf != nil {
		*t.buf = (*t.buf)[:0]
		t.pool.Put(t.buf)
		t.buf = nil
	}
	return err
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
