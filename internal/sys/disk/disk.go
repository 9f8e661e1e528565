// Package disk wraps kvferry's system calls on files, so that tests can make each of them fail: as on a full disk,
// for an unreadable block, or because the file system does not support a rename.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Fault is called before each system call with its name ("open", "create", "read", "write", "sync", "rename", …) and
// path. If it returns an error, the call fails with that error. A failed write writes half of the data first, as real
// disks may do.
type Fault func(op, path string) error

var fault atomic.Pointer[Fault]

// Inject makes calls of the whole process fail until restore is called. It is for tests, which must not run in
// parallel then.
func Inject(f Fault) (restore func()) {
	fault.Store(&f)
	return func() { fault.Store(nil) }
}

// check returns the injected error of a call, if any.
func check(op, path string) error {
	f := fault.Load()
	if f == nil {
		return nil
	}
	if err := (*f)(op, path); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// File is an open file.
type File struct {
	f      *os.File     // nil if the file is one of a mounted file system
	remote *remote      // else nil
	source *Sources     // set if this handle alone reads the file
	usage  []*Usage     // counters that include the file
	held   atomic.Int64 // bytes included there

	streams        bool  // see Stream
	named          bool  // a file of Temp that still has its name
	written, begun int64 // bytes written by Write; bytes whose writeback was started
	reserved       int64 // end of the reserved range; -1: reserve no more
}

// Name returns the path it was opened at.
func (f *File) Name() string {
	if f.remote != nil {
		return f.remote.path
	}
	return f.f.Name()
}

// Fd returns the descriptor.
func (f *File) Fd() uintptr { return f.f.Fd() }

// Read reads up to len(b) bytes.
func (f *File) Read(b []byte) (int, error) {
	if err := check("read", f.Name()); err != nil {
		return 0, err
	}
	if f.remote != nil {
		return f.remote.Read(b)
	}
	return f.f.Read(b)
}

// ReadAt reads at an offset.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	if err := check("read", f.Name()); err != nil {
		return 0, err
	}
	if f.remote != nil {
		return f.remote.ReadAt(b, off)
	}
	return f.f.ReadAt(b, off)
}

// Write writes all of b or returns an error.
func (f *File) Write(b []byte) (int, error) {
	if err := check("write", f.Name()); err != nil {
		n, _ := f.f.Write(b[:len(b)/2])
		return n, err
	}
	if f.streams {
		f.reserve(int64(len(b)))
	}
	n, err := f.f.Write(b)
	f.grow(int64(n))
	if f.streams {
		f.stream(int64(n))
	}
	return n, err
}

// reserveStep is the number of bytes to reserve at a time.
const reserveStep = 4 << 20

// reserve allocates disk space before n bytes are written. The file system then does not have to allocate each block,
// which takes a third of its time. Short files reserve nothing.
func (f *File) reserve(n int64) {
	if f.written < streamStep || f.reserved < 0 || f.written+n <= f.reserved {
		return
	}
	from := max(f.written, f.reserved)
	step := max(reserveStep, f.written+n-from)
	f.reserved = from + step
	if !reserve(f.f, from, step) {
		f.reserved = -1
	}
}

// release frees the space reserved beyond the end of the file.
func (f *File) release() error {
	if f.reserved <= 0 {
		return nil
	}
	f.reserved = -1
	s, err := f.f.Stat()
	if err != nil {
		return err
	}
	return f.f.Truncate(s.Size())
}

// streamStep is the size of a writeback request, and the size from which files reserve space.
const streamStep = 1 << 20

// Stream makes Write start writeback every megabyte, so that Sync has less to wait for. The file must be new. Errors
// of writeback are reported by Sync.
func (f *File) Stream() { f.streams = true }

func (f *File) stream(n int64) {
	if f.written += n; f.written-f.begun >= streamStep {
		writeBack(f.f, f.begun, f.written-f.begun)
		f.begun = f.written
	}
}

// WriteAt writes at an offset.
func (f *File) WriteAt(b []byte, off int64) (int, error) {
	if err := check("write", f.Name()); err != nil {
		n, _ := f.f.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	f.grow(max(off+int64(len(b))-f.held.Load(), 0))
	return f.f.WriteAt(b, off)
}

// ReadFrom copies r to the file, inside the kernel if r is a file and the system supports it.
func (f *File) ReadFrom(r io.Reader) (int64, error) {
	if err := check("write", f.Name()); err != nil {
		return 0, err
	}
	if from, ok := r.(*File); ok {
		if err := check("read", from.Name()); err != nil {
			return 0, err
		}
		r = from.f
		if from.remote != nil {
			r = from.remote
		}
	}
	n, err := f.f.ReadFrom(r)
	f.grow(n)
	return n, err
}

// Seek sets the offset of the next Read or Write.
func (f *File) Seek(off int64, whence int) (int64, error) {
	if f.remote != nil {
		return f.remote.Seek(off, whence)
	}
	return f.f.Seek(off, whence)
}

// Truncate changes the size.
func (f *File) Truncate(size int64) error {
	f.grow(size - f.held.Load())
	return errors.Join(check("truncate", f.Name()), f.f.Truncate(size))
}

// Chmod changes the permissions.
func (f *File) Chmod(mode fs.FileMode) error {
	if err := check("chmod", f.Name()); err != nil {
		return err
	}
	return f.f.Chmod(mode)
}

// Sync waits until the file is durable.
func (f *File) Sync() error {
	return errors.Join(check("sync", f.Name()), f.release(), f.f.Sync())
}

// Stat describes the file.
func (f *File) Stat() (fs.FileInfo, error) {
	if err := check("stat", f.Name()); err != nil {
		return nil, err
	}
	if f.remote != nil {
		return f.remote.Stat()
	}
	return f.f.Stat()
}

// Close closes the file, even if it returns an error.
func (f *File) Close() error {
	if f.source != nil {
		f.source.closing(f)
	}
	err := errors.Join(check("close", f.Name()), f.release())
	f.grow(-f.held.Load())
	if f.remote != nil {
		return errors.Join(err, f.remote.Close())
	}
	if e := f.f.Close(); e != nil {
		err = e
	}
	if f.named {
		err = errors.Join(err, Remove(f.Name()))
	}
	return err
}

func opened(f *os.File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{f: f}, nil
}

// made is like opened, for new files.
func made(f *os.File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{f: f, usage: usageOf(f.Name())}, nil
}

// Open opens a file or directory for reading.
func Open(path string) (*File, error) {
	return again(func() (*File, error) {
		if err := check("open", path); err != nil {
			return nil, err
		}
		if f, name := mounted(path); f != nil {
			return openMounted(f, path, name)
		}
		return opened(open(path, os.O_RDONLY, 0))
	})
}

// OpenFile is os.OpenFile.
func OpenFile(path string, flag int, mode fs.FileMode) (*File, error) {
	op := "open"
	if flag&os.O_CREATE != 0 {
		op = "create"
	}
	if err := check(op, path); err != nil {
		return nil, err
	}
	if op == "create" {
		return made(open(path, flag, mode))
	}
	return opened(open(path, flag, mode))
}

// Create makes or empties a file for writing.
func Create(path string) (*File, error) {
	return OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// CreateTemp is os.CreateTemp.
func CreateTemp(dir, pattern string) (*File, error) {
	if err := check("create", filepath.Join(dir, pattern)); err != nil {
		return nil, err
	}
	return made(openTemp(dir, pattern))
}

// Temp creates a temporary file that vanishes when it is closed. It is unlinked at once, so that it also vanishes if
// the process is killed; if the system cannot unlink open files, Close removes it. kind is part of its name.
func Temp(dir, kind string) (*File, error) {
	f, err := CreateTemp(dir, "kvferry-"+kind+"-*")
	if err == nil {
		f.named = Remove(f.Name()) != nil
	}
	return f, err
}

// MkdirTemp is os.MkdirTemp.
func MkdirTemp(dir, pattern string) (string, error) {
	if err := check("mkdir", filepath.Join(dir, pattern)); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, pattern)
}

// Mkdir makes a directory.
func Mkdir(path string) error {
	if err := check("mkdir", path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o755)
}

// MkdirAll makes a directory and its parents.
func MkdirAll(path string) error {
	if err := check("mkdir", path); err != nil {
		return err
	}
	return os.MkdirAll(path, 0o755)
}

// Rename renames a file and replaces an existing target.
func Rename(from, to string) error {
	if err := check("rename", from); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// Link makes a hard link.
func Link(from, to string) error {
	if err := check("link", from); err != nil {
		return err
	}
	return os.Link(from, to)
}

// Symlink makes a symbolic link at path.
func Symlink(to, path string) error {
	if err := check("symlink", path); err != nil {
		return err
	}
	return os.Symlink(to, path)
}

// Chmod changes the permissions of a file.
func Chmod(path string, mode fs.FileMode) error {
	if err := check("chmod", path); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// Remove removes a file or an empty directory.
func Remove(path string) error {
	if err := check("remove", path); err != nil {
		return err
	}
	return os.Remove(path)
}

// RemoveAll removes a tree. A missing one is not an error.
func RemoveAll(path string) error {
	if err := check("remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Stat describes a file and follows symbolic links.
func Stat(path string) (fs.FileInfo, error) { return statPath(os.Stat, path) }

// Lstat describes a file or a symbolic link.
func Lstat(path string) (fs.FileInfo, error) { return statPath(os.Lstat, path) }

func statPath(stat func(string) (fs.FileInfo, error), path string) (fs.FileInfo, error) {
	return again(func() (fs.FileInfo, error) {
		if err := check("stat", path); err != nil {
			return nil, err
		}
		if f, name := mounted(path); f != nil {
			return orNil(f.Stat(name))
		}
		return stat(path)
	})
}

// ReadDir lists a directory.
func ReadDir(path string) ([]fs.DirEntry, error) {
	return again(func() ([]fs.DirEntry, error) {
		if err := check("readdir", path); err != nil {
			return nil, err
		}
		if f, name := mounted(path); f != nil {
			return entriesOf(f.ReadDir(name))
		}
		return os.ReadDir(path)
	})
}

// maxSmall limits ReadFile: the path may lead to an endless device.
const maxSmall = 64 << 20

// ReadFile reads a file that must be small.
func ReadFile(path string) ([]byte, error) { return ReadSmall(path, maxSmall) }

// ReadSmall reads a file of at most the given size. A larger file is an error.
func ReadSmall(path string, most int64) (b []byte, err error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	b, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s: more than %d bytes: this is another kind of file than is expected here", path, most)
	}
	return b, errors.Join(err, f.Close())
}

// WriteFile makes or replaces a file.
func WriteFile(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// WriteSynced is WriteFile for a file that a crash of the machine must not lose.
func WriteSynced(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
