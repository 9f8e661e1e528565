package disk

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kvferry/internal/sys/pace"
)

// FS is a place of files other than the local disk, such as a bucket of an object store. It is only read. Names are
// valid in the sense of fs.ValidPath, relative to where the file system is mounted.
type FS interface {
	Open(name string) (Handle, error)
	Stat(name string) (*Info, error)
	// ReadDir lists a directory in the order of names.
	ReadDir(name string) ([]*Info, error)
	// Now returns a function that is like Stat, but knows nothing of what the file system has kept until now.
	Now() (func(name string) (*Info, error), error)
}

// Handle is an open file of an FS. ReadAt may be called by several goroutines at once.
type Handle interface {
	io.ReaderAt
	io.Closer
	Stat() (*Info, error)
	// Keep and Sparse implement those of File.
	Keep(dir string)
	Sparse() io.ReaderAt
	// Ahead starts to fetch n bytes at off.
	Ahead(off, n int64)
}

// Info describes a file or directory of an FS: it is an fs.FileInfo and an fs.DirEntry.
type Info struct {
	Base    string
	Bytes   int64
	Time    time.Time
	Dir     bool
	Version string // differs for different contents, such as the ETag of an object; "" if unknown
	Of      string // the address of the file
}

func (i *Info) Name() string               { return i.Base }
func (i *Info) Size() int64                { return i.Bytes }
func (i *Info) ModTime() time.Time         { return i.Time }
func (i *Info) IsDir() bool                { return i.Dir }
func (i *Info) Sys() any                   { return nil }
func (i *Info) Type() fs.FileMode          { return i.Mode().Type() }
func (i *Info) Info() (fs.FileInfo, error) { return i, nil }

// Mode returns the permissions to read.
func (i *Info) Mode() fs.FileMode {
	if i.Dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// Version returns what differs for different contents of a file, "" for a file of the local disk.
func Version(info fs.FileInfo) string {
	if i, ok := info.(*Info); ok {
		return i.Version
	}
	return ""
}

// SameFile is os.SameFile. Files of a mounted file system are the same if address and version are: a changed object is
// another object.
func SameFile(a, b fs.FileInfo) bool {
	x, mounted := a.(*Info)
	y, ok := b.(*Info)
	if mounted && ok {
		return x.Of == y.Of && x.Version == y.Version
	}
	return os.SameFile(a, b)
}

// mount is a mounted file system, the address of its root and what it was mounted for.
type mount struct {
	root, at string
	fs       FS
}

var (
	mounts   atomic.Pointer[[]*mount] // the oldest first; nil if there are none
	mounting sync.Mutex
)

// Mount puts a file system at an address, such as s3://bucket/directory. The functions of this package that read then
// also work for paths at and below the address; those that write fail.
//
// at is the path, at or below root, that the file system is mounted for. Several file systems may have the same root:
// the one with the longest at that has a path serves it, else the one with the longest root, and of equal ones the
// oldest. So a mount never takes away a path at or below the at of an earlier one, unless its own at lies there.
func Mount(root, at string, f FS) (unmount func()) {
	m := &mount{root: Address(root), at: Address(at), fs: f}
	change := func(how func([]*mount) []*mount) {
		mounting.Lock()
		defer mounting.Unlock()
		var now []*mount
		if old := mounts.Load(); old != nil {
			now = slices.Clone(*old)
		}
		if now = how(now); len(now) == 0 {
			mounts.Store(nil)
		} else {
			mounts.Store(&now)
		}
	}
	change(func(all []*mount) []*mount { return append(all, m) })
	return func() {
		change(func(all []*mount) []*mount { return slices.DeleteFunc(all, func(x *mount) bool { return x == m }) })
	}
}

// Address returns the address of a path that begins with a scheme, with two slashes: filepath.Join and its relatives
// leave one. Other paths are returned as they are.
func Address(p string) string {
	scheme, rest, ok := cutScheme(p)
	if !ok {
		return p
	}
	return scheme + "://" + strings.TrimPrefix(path.Clean("/"+rest), "/")
}

// cutScheme splits the address of a file, in the form of Address or as filepath.Join leaves it.
func cutScheme(p string) (scheme, rest string, ok bool) {
	p = filepath.ToSlash(p)
	scheme, rest, ok = strings.Cut(p, ":/")
	return scheme, strings.TrimLeft(rest, "/"), ok && len(scheme) > 1 && !strings.ContainsAny(scheme, "/.")
}

// mounted returns the file system that has a path, and the name there; nil for the local disk.
func mounted(p string) (FS, string) {
	all := mounts.Load()
	if all == nil {
		return nil, ""
	}
	if _, _, ok := cutScheme(p); !ok {
		return nil, ""
	}
	p = Address(p)
	var best *mount
	fit := [2]int{-1, -1} // lengths of at and root
	for _, m := range *all {
		of := [2]int{-1, len(m.root)}
		if Under(m.at, p) {
			of[0] = len(m.at)
		}
		if Under(m.root, p) && slices.Compare(of[:], fit[:]) > 0 {
			best, fit = m, of
		}
	}
	switch {
	case best == nil:
		return nil, ""
	case p == best.root:
		return best.fs, "."
	}
	return best.fs, p[len(best.root)+1:]
}

// Under reports whether a path or address with slashes is that of a directory or lies below it.
func Under(dir, address string) bool {
	rest, ok := strings.CutPrefix(address, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// IsMounted reports whether a path is one of a mounted file system. It is not one of the local disk then: no lock can
// be held there, and other programs and libraries cannot open it.
func IsMounted(p string) bool {
	f, _ := mounted(p)
	return f != nil
}

// Abs is filepath.Abs; the path of a mounted file system is absolute.
func Abs(p string) (string, error) {
	if IsMounted(p) {
		return Address(p), nil
	}
	return filepath.Abs(p)
}

// Join is filepath.Join; the path of a mounted file system keeps the two slashes of its address.
func Join(elem ...string) string { return kept(filepath.Join(elem...)) }

// Dir is filepath.Dir, as Join is filepath.Join.
func Dir(p string) string { return kept(filepath.Dir(p)) }

// kept returns a cleaned path as it is to be shown.
func kept(p string) string {
	if IsMounted(p) {
		return Address(p)
	}
	return p
}

// openMounted opens a file of a mounted file system.
func openMounted(f FS, p, name string) (*File, error) {
	h, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := h.Stat()
	if err != nil {
		h.Close()
		return nil, err
	}
	return &File{remote: &remote{Handle: h, path: p, SectionReader: io.NewSectionReader(h, 0, st.Bytes)}}, nil
}

// remote is what a File has instead of a file of the system.
type remote struct {
	Handle
	path string
	*io.SectionReader
}

// ReadAt reads at an offset.
func (r *remote) ReadAt(p []byte, off int64) (int, error) { return r.SectionReader.ReadAt(p, off) }

// Keep prepares for a second reader. A mounted file system then stores fetched bytes of the file in a temporary file in
// dir, if there is room, and never fetches them again.
func (f *File) Keep(dir string) {
	if f.remote != nil {
		f.remote.Handle.Keep(dir)
	}
}

// Sparse returns a reader for a few places in the file. It does not read ahead.
func (f *File) Sparse() io.ReaderAt {
	if f.remote != nil {
		return f.remote.Handle.Sparse()
	}
	return f
}

// Ahead starts to fetch n bytes at off of a file of a mounted file system, for a reader that will come. Places that are
// fetched together arrive in the time of one. Other files are left alone.
func Ahead(path string, off, n int64) {
	if f, name := mounted(path); f != nil {
		if h, err := f.Open(name); err == nil {
			h.Ahead(off, n)
			h.Close()
		}
	}
}

// together is the number of files of a mounted file system that Together opens at the same time.
const together = 16

// Together calls do with the numbers from 0 to n-1, several at a time, for files of a mounted file system, each of which
// takes some round trips. It ignores other paths.
func Together(path string, n int, do func(i int)) {
	if IsMounted(path) {
		_ = pace.Each(n, together, func(i int) error { do(i); return nil })
	}
}

// noLink is the error of Readlink for a path of a mounted file system.
func noLink(p string) error { return &fs.PathError{Op: "readlink", Path: p, Err: syscall.EINVAL} }

// orNil makes the description of a file an fs.FileInfo; a nil pointer would not be a nil interface.
func orNil(i *Info, err error) (fs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return i, nil
}

// entriesOf makes descriptions the entries of a directory.
func entriesOf(infos []*Info, err error) ([]fs.DirEntry, error) {
	out := make([]fs.DirEntry, len(infos))
	for i, info := range infos {
		out[i] = info
	}
	return out, err
}

// statNow returns Stat for a check of many files. It asks each mounted file system once for its present state, however
// many of its files are checked.
func statNow() func(path string) (fs.FileInfo, error) {
	type answer struct {
		stat func(string) (*Info, error)
		err  error
	}
	asked := map[FS]answer{}
	return func(path string) (fs.FileInfo, error) {
		f, name := mounted(path)
		if f == nil {
			return Stat(path)
		}
		a, ok := asked[f]
		if !ok {
			a.stat, a.err = f.Now()
			asked[f] = a
		}
		if a.err != nil {
			return nil, a.err
		}
		return orNil(a.stat(name))
	}
}
