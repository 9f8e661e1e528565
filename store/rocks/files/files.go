package files

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"kvferry/internal/sys/disk"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// File is a file read at offsets. Its descriptor is opened on demand and may be closed while no read is running; a file
// in memory has none.
type File struct {
	set  *Set
	Path string // to open, and for errors
	Name string // relative to the store's directory, for places
	Size int64
	mem  []byte // the whole file, if in memory

	pinned io.ReaderAt // of a temporary file: always open
	start  int64       // its offset there

	f    *disk.File // f, refs and elem are guarded by the pool's mutex
	refs int        // running reads
	elem *list.Element
	lost lost
}

// Set is the files of a store. Idle ones may be closed, and are reopened on demand.
type Set struct {
	Pool *Pool // shared with other sets; nil: the process's pool
	Keep bool  // files stay open until the set is closed
	// Sources records the original state of the files; may be nil.
	Sources *disk.Sources
	// Again, if not nil, is called after a read error that a second attempt did not repeat.
	Again func(f *File, off int64, refused error)

	open   map[*File]struct{} // guarded by the pool's mutex
	closed bool
}

// pool returns the pool of the set.
func (s *Set) pool() *Pool {
	if s.Pool == nil {
		return process
	}
	return s.Pool
}

// Open checks a file, and opens it immediately if now is set.
func (s *Set) Open(dir, name string, now bool) (*File, error) {
	f := &File{set: s, Path: disk.Join(dir, name), Name: name}
	st, err := disk.Stat(f.Path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", f.Path, store.ErrNotRegular)
	}
	if err := s.Sources.Add(f.Path, st); err != nil {
		return nil, err
	}
	f.Size = st.Size()
	if now {
		if _, err := f.Acquire(); err != nil {
			return nil, err
		}
		f.Release()
	}
	return f, nil
}

// Memory returns a file that consists of b.
func Memory(name string, b []byte) *File {
	return &File{Path: name, Name: name, mem: b, Size: int64(len(b))}
}

// Temporary returns the part of an open file from start on; r must stay open while it is read. The writer sets Size.
func Temporary(r io.ReaderAt, name string, start int64) *File {
	return &File{Path: name, Name: name, pinned: r, start: start}
}

// Acquire returns the open file; the caller must call Release.
func (f *File) Acquire() (*disk.File, error) {
	s := f.set
	p := s.pool()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.closed {
		return nil, fs.ErrClosed
	}
	if f.f == nil {
		h, err := p.openFile(s.Sources, f.Path)
		if err != nil {
			return nil, err
		}
		if s.open == nil {
			s.open = map[*File]struct{}{}
		}
		f.f, s.open[f] = h, struct{}{}
		p.open++
	}
	if f.elem != nil {
		p.idle.Remove(f.elem)
		f.elem = nil
	}
	f.refs++
	return f.f, nil
}

// Release ends a use of the file.
func (f *File) Release() {
	s := f.set
	p := s.pool()
	p.mu.Lock()
	defer p.mu.Unlock()
	f.refs--
	switch {
	case f.refs > 0:
	case s.closed:
		f.closeNow()
	case !s.Keep:
		f.elem = p.idle.PushBack(f)
	}
}

// NumOpen returns the number of open files.
func (s *Set) NumOpen() int {
	p := s.pool()
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(s.open)
}

// closeNow closes the file. The caller holds the pool's mutex.
func (f *File) closeNow() {
	if f.f != nil {
		f.f.Close()
		f.f = nil
		delete(f.set.open, f)
		f.set.pool().open--
	}
}

// Close closes all files; files in use close when their last read ends.
func (s *Set) Close() {
	p := s.pool()
	p.mu.Lock()
	defer p.mu.Unlock()
	s.closed = true
	for f := range s.open {
		if f.elem != nil {
			p.idle.Remove(f.elem)
			f.elem = nil
		}
		if f.refs == 0 {
			f.closeNow()
		}
	}
}

// ReadFull fills p from offset off. A file that is too short is damage, and so are unreadable bytes of the medium: they
// are not requested again, so that all readers see the same contents.
func (f *File) ReadFull(p []byte, off int64) error {
	if off < 0 || int64(len(p)) > f.Size-off {
		return base.Corrupt(f.Path, off, "read", fmt.Errorf("%d bytes wanted, the file has %d", len(p), f.Size))
	}
	if f.mem != nil {
		copy(p, f.mem[off:])
		return nil
	}
	err := f.read(p, off)
	if errors.Is(err, syscall.EIO) && f.lost.in(off, len(p)) == nil { // do not add readable neighbors of lost bytes
		f.lost.add(off, len(p), err)
	}
	return err
}

// ReadAt implements io.ReaderAt for bytes within Size.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.ReadFull(p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}

// read reads from the file, which may have shrunk since it was opened.
func (f *File) read(p []byte, off int64) error {
	if err := f.lost.in(off, len(p)); err != nil {
		return err
	}
	r := f.pinned
	if r == nil {
		h, err := f.Acquire()
		if err != nil {
			return err
		}
		defer f.Release()
		r = h
	}
	n, refused, err := disk.ReadAt(r, p, f.start+off)
	if n == len(p) {
		if refused != nil && f.set != nil && f.set.Again != nil {
			f.set.Again(f, off, refused)
		}
		return nil
	}
	if err == io.EOF {
		return base.Corrupt(f.Path, off, "read", fmt.Errorf("%d bytes wanted, %d there: %w", len(p), n, base.ErrShrank))
	}
	return err
}
