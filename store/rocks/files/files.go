package files

import (
	"container/list"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"kvferry/internal/disk"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// MaxOpenFiles bounds how many tables of one store are open at a time.
const MaxOpenFiles = 512

// File is a file read at offsets. Its descriptor is opened when needed and may be closed while
// nobody reads; an in-memory one has none.
type File struct {
	set  *Set
	Path string // to open, and for errors
	Name string // relative to the store's directory, for places
	Size int64
	mem  []byte // the whole file, when it lives in memory

	pinned *disk.File // of a temporary file: always open

	f    *disk.File // guarded by the set's mutex
	refs int        // readers under way
	elem *list.Element
}

// Set keeps at most max files open, closing the one that was not read the longest.
type Set struct {
	mu     sync.Mutex
	Max    int       // 0: no bound
	idle   list.List // of *File that are open and not being read, longest idle first
	open   int
	closed bool
}

// Open looks at a file, and opens it at once when now is set.
func (s *Set) Open(dir, name string, now bool) (*File, error) {
	f := &File{set: s, Path: filepath.Join(dir, name), Name: name}
	st, err := disk.Stat(f.Path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", f.Path, store.ErrNotRegular)
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

// Memory makes a file of bytes in memory.
func Memory(name string, b []byte) *File {
	return &File{Path: name, Name: name, mem: b, Size: int64(len(b))}
}

// Temporary makes a file of one that is open, and stays so for as long as it is read. Its size is set when it is written.
func Temporary(f *disk.File) *File { return &File{Path: f.Name(), Name: f.Name(), pinned: f} }

// Acquire returns the open file; release must follow.
func (f *File) Acquire() (*disk.File, error) {
	s := f.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fs.ErrClosed
	}
	if f.f == nil {
		s.evict()
		h, err := disk.Open(f.Path)
		if err != nil {
			return nil, err
		}
		f.f = h
		s.open++
	}
	if f.elem != nil {
		s.idle.Remove(f.elem)
		f.elem = nil
	}
	f.refs++
	return f.f, nil
}

// Release ends a use of the file.
func (f *File) Release() {
	s := f.set
	s.mu.Lock()
	defer s.mu.Unlock()
	f.refs--
	if f.refs > 0 {
		return
	}
	if s.closed {
		f.closeNow()
		return
	}
	f.elem = s.idle.PushBack(f)
}

// NumOpen counts the files that are open.
func (s *Set) NumOpen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// evict closes idle files until one more may be opened.
func (s *Set) evict() {
	for s.Max > 0 && s.open >= s.Max && s.idle.Len() > 0 {
		e := s.idle.Front()
		s.idle.Remove(e)
		f := e.Value.(*File)
		f.elem = nil
		f.closeNow()
	}
}

func (f *File) closeNow() {
	if f.f != nil {
		f.f.Close()
		f.f = nil
		f.set.open--
	}
}

// Close closes all files; those being read close when the read ends.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for e := s.idle.Front(); e != nil; e = e.Next() {
		f := e.Value.(*File)
		f.elem = nil
		f.closeNow()
	}
	s.idle.Init()
}

// ReadFull fills p from offset off. A file that ends before is damage.
func (f *File) ReadFull(p []byte, off int64) error {
	if off < 0 || off > f.Size || int64(len(p)) > f.Size-off {
		return base.Corrupt(f.Path, off, "read", fmt.Errorf("%d bytes wanted, the file has %d", len(p), f.Size))
	}
	if f.mem != nil {
		copy(p, f.mem[off:])
		return nil
	}
	h := f.pinned
	if h == nil {
		var err error
		if h, err = f.Acquire(); err != nil {
			return err
		}
		defer f.Release()
	}
	n, err := h.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return base.Corrupt(f.Path, off, "read", fmt.Errorf("%d bytes wanted, %d there: %w", len(p), n, base.ErrShrank))
	}
	return err
}
