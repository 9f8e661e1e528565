// Package disk is where kvferry's own system calls on files are made, so that tests can make any of them fail: a
// disk that is full, a read that the medium refuses, a rename that the file system does not know.
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

// Fault is asked before each call, by its name ("open", "create", "read", "write", "sync", "rename", …) and path. An error
// is returned in its place. A write is done by half first, as disks do it.
type Fault func(op, path string) error

var fault atomic.Pointer[Fault]

// Inject makes calls of the whole process fail until restore is called. Only tests use it, and those that do are not
// run beside others.
func Inject(f Fault) (restore func()) {
	fault.Store(&f)
	return func() { fault.Store(nil) }
}

// check asks whether a call fails.
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
	f      *os.File
	source *Sources     // that this handle belongs to, when all of a file is read by it
	usage  []*Usage     // that count it
	held   atomic.Int64 // bytes counted

	streams        bool  // see Stream
	named          bool  // a file of Temp whose name is still there
	written, begun int64 // bytes by Write; of these, those on their way to the disk
	reserved       int64 // where the part ends that was reserved; -1: no more is asked for
}

// Name returns the path it was opened at.
func (f *File) Name() string { return f.f.Name() }

// Fd returns the descriptor.
func (f *File) Fd() uintptr { return f.f.Fd() }

// Read is that of an os.File, and so are the other methods.
func (f *File) Read(b []byte) (int, error) {
	if err := check("read", f.Name()); err != nil {
		return 0, err
	}
	return f.f.Read(b)
}

// ReadAt reads at an offset.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	if err := check("read", f.Name()); err != nil {
		return 0, err
	}
	return f.f.ReadAt(b, off)
}

// Write writes all of b, or returns an error.
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

// reserveStep is how many bytes are reserved at once, when a file has become as long.
const reserveStep = 4 << 20

// reserve asks for room on the disk before n bytes are written there. The file system then need not look for it block by
// block, which is a third of its time.
func (f *File) reserve(n int64) {
	if f.written < streamStep || f.reserved < 0 || f.written+n <= f.reserved {
		return
	}
	from := max(f.written, f.reserved)
	step := max(reserveStep, f.written+n-from)
	if f.reserved = from + step; !reserve(f.f, from, step) {
		f.reserved = -1
	}
}

// release gives back what was reserved beyond the end of the file.
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

// streamStep is how many bytes are sent to the disk at once.
const streamStep = 1 << 20

// Stream makes Write send what it wrote to the disk every megabyte instead of leaving all of it to Sync. The file is new.
// It helps where it can: what goes wrong is Sync's to tell.
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

// ReadFrom writes what r has, by the kernel alone where both are files.
func (f *File) ReadFrom(r io.Reader) (int64, error) {
	if err := check("write", f.Name()); err != nil {
		return 0, err
	}
	if from, ok := r.(*File); ok {
		if err := check("read", from.Name()); err != nil {
			return 0, err
		}
		r = from.f
	}
	n, err := f.f.ReadFrom(r)
	f.grow(n)
	return n, err
}

// Seek sets the offset of the next Read or Write.
func (f *File) Seek(off int64, whence int) (int64, error) { return f.f.Seek(off, whence) }

// Truncate changes the size.
func (f *File) Truncate(size int64) error {
	f.grow(size - f.held.Load())
	return errors.Join(check("truncate", f.Name()), f.f.Truncate(size))
}

// Chmod changes who may read and write it.
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
	return f.f.Stat()
}

// Close closes the file; it is closed also when that fails.
func (f *File) Close() error {
	if f.source != nil {
		f.source.closing(f)
	}
	err := errors.Join(check("close", f.Name()), f.release())
	f.grow(-f.held.Load())
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

// made is opened for a file that is new.
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

// Temp makes a temporary file that is gone when it is closed. It loses its name at once, so that nothing is left behind however
// the process ends; on a system that keeps the names of open files, Close removes it. Kind is a word for what is in it.
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

// MkdirAll makes a directory and those above it.
func MkdirAll(path string) error {
	if err := check("mkdir", path); err != nil {
		return err
	}
	return os.MkdirAll(path, 0o755)
}

// Rename replaces what has the new name.
func Rename(from, to string) error {
	if err := check("rename", from); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// Link makes a second name of a file.
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

// Remove removes a file or an empty directory.
func Remove(path string) error {
	if err := check("remove", path); err != nil {
		return err
	}
	return os.Remove(path)
}

// RemoveAll removes a tree; one that is not there is no error.
func RemoveAll(path string) error {
	if err := check("remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Stat describes a file, behind symbolic links.
func Stat(path string) (fs.FileInfo, error) { return look(os.Stat, path) }

// Lstat describes a file or a symbolic link.
func Lstat(path string) (fs.FileInfo, error) { return look(os.Lstat, path) }

func look(stat func(string) (fs.FileInfo, error), path string) (fs.FileInfo, error) {
	return again(func() (fs.FileInfo, error) {
		if err := check("stat", path); err != nil {
			return nil, err
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
		return os.ReadDir(path)
	})
}

// maxSmall bounds what is known to be small: a name may lead to a device without an end.
const maxSmall = 64 << 20

// ReadFile reads a file that is known to be small.
func ReadFile(path string) ([]byte, error) { return ReadSmall(path, maxSmall) }

// ReadSmall reads a file of at most so many bytes. A larger one is an error.
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
