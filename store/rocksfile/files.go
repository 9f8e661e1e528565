package rocksfile

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"kvferry/store"
)

// maxOpenFiles bounds how many tables of one store are open at a time.
const maxOpenFiles = 512

// dataFile is a file read at offsets. Its descriptor is opened when needed and may be closed while
// nobody reads; an in-memory one has none.
type dataFile struct {
	set  *fileSet
	path string // to open, and for errors
	name string // relative to the store's directory, for places
	size int64
	mem  []byte // the whole file, when it lives in memory

	pinned *os.File // of a spool: always open

	f    *os.File // guarded by set.mu
	refs int      // readers under way
	elem *list.Element
}

// fileSet keeps at most max files open, closing the one that was not read the longest.
type fileSet struct {
	mu   sync.Mutex
	max  int       // 0: no bound
	idle list.List // of *dataFile that are open and not being read, longest idle first
	open int
	done bool
}

// openFile looks at a file, and opens it at once when now is set.
func (s *fileSet) openFile(dir, name string, now bool) (*dataFile, error) {
	f := &dataFile{set: s, path: filepath.Join(dir, name), name: name}
	st, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", f.path, store.ErrNotRegular)
	}
	f.size = st.Size()
	if now {
		if _, err := f.acquire(); err != nil {
			return nil, err
		}
		f.release()
	}
	return f, nil
}

// memFile makes a file of bytes in memory.
func memFile(name string, b []byte) *dataFile {
	return &dataFile{path: name, name: name, mem: b, size: int64(len(b))}
}

// acquire returns the open file; release must follow.
func (f *dataFile) acquire() (*os.File, error) {
	s := f.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil, fs.ErrClosed
	}
	if f.f == nil {
		s.evict()
		h, err := os.Open(f.path)
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

// release ends a use of the file.
func (f *dataFile) release() {
	s := f.set
	s.mu.Lock()
	defer s.mu.Unlock()
	f.refs--
	if f.refs > 0 {
		return
	}
	if s.done {
		f.closeNow()
		return
	}
	f.elem = s.idle.PushBack(f)
}

// evict closes idle files until one more may be opened.
func (s *fileSet) evict() {
	for s.max > 0 && s.open >= s.max && s.idle.Len() > 0 {
		e := s.idle.Front()
		s.idle.Remove(e)
		f := e.Value.(*dataFile)
		f.elem = nil
		f.closeNow()
	}
}

func (f *dataFile) closeNow() {
	if f.f != nil {
		f.f.Close()
		f.f = nil
		f.set.open--
	}
}

// close closes all files; those being read close when the read ends.
func (s *fileSet) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	for e := s.idle.Front(); e != nil; e = e.Next() {
		f := e.Value.(*dataFile)
		f.elem = nil
		f.closeNow()
	}
	s.idle.Init()
}

// errShrank says that a file has lost its end since it was opened.
var errShrank = errors.New("the file shrank")

// readAt fills p from offset off. A file that ends before is damage.
func (f *dataFile) readAt(p []byte, off int64) error {
	if off < 0 || off > f.size || int64(len(p)) > f.size-off {
		return corrupt(f.path, off, "read", fmt.Errorf("%d bytes wanted, the file has %d", len(p), f.size))
	}
	if f.mem != nil {
		copy(p, f.mem[off:])
		return nil
	}
	h := f.pinned
	if h == nil {
		var err error
		if h, err = f.acquire(); err != nil {
			return err
		}
		defer f.release()
	}
	n, err := h.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return corrupt(f.path, off, "read", fmt.Errorf("%d bytes wanted, %d there: %w", len(p), n, errShrank))
	}
	return err
}
