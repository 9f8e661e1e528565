package object

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"kvferry/internal/sys/disk"
)

// files is the file system of an address: the objects below base. An object is described when it is first asked for;
// the objects of a directory together, by one listing.
type files struct {
	requests
	start  string // key of the address
	base   string // key of the directory that has it, the root; "" is the bucket
	number int    // of the mount; its paths have it if it is not 1
	cache  *cache

	mu     sync.Mutex
	known  map[string]*object // by name; nil: it does not exist
	listed []string           // directories of which every object is known
	spools []*kept
}

// forget frees the disk that kept objects take.
func (f *files) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.spools {
		k.close()
	}
}

// key returns the key of a name.
func (f *files) key(name string) string {
	if name == "." {
		return f.base
	}
	return path.Join(f.base, name)
}

// address returns the address of a name, for messages.
func (f *files) address(name string) string { return f.addressOf(f.key(name)) }

// addressOf returns the path of a key. A # is neither in a host nor in the name of a bucket.
func (f *files) addressOf(key string) string {
	address := f.server.address(key)
	if f.number <= 1 {
		return address
	}
	scheme, rest, _ := strings.Cut(address, "://")
	host, key, _ := strings.Cut(rest, "/")
	return strings.TrimSuffix(fmt.Sprintf("%s://%s#%d/%s", scheme, host, f.number, key), "/")
}

// Stat describes an object, or a directory: a prefix of objects, up to a slash.
func (f *files) Stat(name string) (*disk.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o, ok := f.known[name]; ok && o != nil {
		return f.info(name, o), nil
	}
	if !f.isListed(name) {
		o, err := f.describe(name)
		if err == nil {
			return f.info(name, o), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !denied(err) {
			return nil, err
		}
		if e := f.listIn(name); e != nil {
			return nil, e
		}
		if denied(err) && !f.isDir(name) {
			return nil, err
		}
	}
	if f.isDir(name) {
		return f.dir(name), nil
	}
	return nil, failed("stat", f.address(name), fs.ErrNotExist)
}

// describe asks for an object that is not known. f.mu is held.
func (f *files) describe(name string) (o *object, err error) {
	if o, ok := f.known[name]; ok && o == nil || name == "." {
		return nil, fs.ErrNotExist
	}
	err = f.retry("stat", f.address(name), func() (err error) {
		o, err = f.server.stat(f.ctx, f.key(name))
		return err
	})
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		f.known[name] = o
	}
	return o, err
}

// listIn makes all objects below a directory known. f.mu is held.
func (f *files) listIn(dir string) error {
	found, err := f.list(dir)
	if err == nil {
		err = f.uploaded(found)
	}
	if err != nil {
		return err
	}
	for name, o := range found {
		if f.known[name] == nil { // a version that was read counts, not a later one
			f.known[name] = o
		}
	}
	f.listed = append(f.listed, dir)
	return nil
}

// list lists the objects below a directory by name.
func (f *files) list(dir string) (map[string]*object, error) {
	prefix := f.key(dir)
	if prefix != "" {
		prefix += "/"
	}
	out, last := map[string]*object{}, ""
	err := f.retry("list", f.address(dir), func() error {
		return f.server.list(f.ctx, prefix, last, func(o *object) {
			last = o.key
			name := path.Join(dir, strings.TrimPrefix(o.key, prefix))
			if f.key(name) == o.key { // a key that ends in a slash marks a directory
				out[name] = o
			}
		})
	})
	return out, err
}

func (f *files) isListed(name string) bool {
	return slices.ContainsFunc(f.listed, func(dir string) bool { return under(dir, name) })
}

// under reports whether a name is a directory or lies below it.
func under(dir, name string) bool {
	return dir == "." || disk.Under(dir, name)
}

// isDir reports whether a known object lies below a name.
func (f *files) isDir(name string) bool {
	for have, o := range f.known {
		if o != nil && have != name && under(name, have) {
			return true
		}
	}
	return name == "." && f.base == ""
}

func (f *files) info(name string, o *object) *disk.Info {
	return &disk.Info{Base: path.Base(f.key(name)), Bytes: o.size, Time: o.modified, Version: o.version, Of: f.address(name)}
}

func (f *files) dir(name string) *disk.Info {
	return &disk.Info{Base: path.Base("/" + f.key(name)), Dir: true, Of: f.address(name)}
}

// ReadDir lists a directory.
func (f *files) ReadDir(dir string) ([]*disk.Info, error) {
	st, err := f.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !st.Dir {
		return nil, failed("readdir", f.address(dir), syscall.ENOTDIR)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isListed(dir) {
		if err := f.listIn(dir); err != nil {
			return nil, err
		}
	}
	entries := map[string]*disk.Info{}
	for name, o := range f.known {
		if o == nil || name == dir || !under(dir, name) {
			continue
		}
		rel := name
		if dir != "." {
			rel = name[len(dir)+1:]
		}
		first, _, below := strings.Cut(rel, "/")
		switch at := path.Join(dir, first); {
		case below && entries[first] == nil:
			entries[first] = f.dir(at)
		case !below: // an object hides a directory of its name
			entries[first] = f.info(at, o)
		}
	}
	out := make([]*disk.Info, 0, len(entries))
	for _, e := range entries {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *disk.Info) int { return strings.Compare(a.Base, b.Base) })
	return out, nil
}

// Now describes everything again: listed directories by one listing each, others one by one.
func (f *files) Now() (func(name string) (*disk.Info, error), error) {
	now := &files{requests: requests{ctx: f.ctx, o: f.o, server: f.server}, base: f.base, number: f.number,
		known: map[string]*object{}}
	f.mu.Lock()
	listed := slices.Clone(f.listed)
	f.mu.Unlock()
	for _, dir := range listed {
		if now.isListed(dir) {
			continue
		}
		if err := now.listIn(dir); err != nil {
			return nil, err
		}
	}
	return now.Stat, nil
}

// Open opens an object.
func (f *files) Open(name string) (disk.Handle, error) {
	st, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &handle{f: f, info: st, o: f.known[name]}, nil
}

// handle is an open object.
type handle struct {
	f    *files
	info *disk.Info
	o    *object // nil for a directory
	// sparse: what follows is not read ahead
	sparse bool
}

// Ahead requests the pieces of a range that are not held.
func (h *handle) Ahead(off, n int64) {
	c := h.f.cache
	if h.o == nil || off < 0 || n <= 0 || off >= h.o.size {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := off / c.size
	c.request(h, first, int((min(off+n, h.o.size)-1)/c.size-first)+1, hinted)
}

// Sparse returns a reader that does not read ahead.
func (h *handle) Sparse() io.ReaderAt { return &handle{h.f, h.info, h.o, true} }

func (h *handle) Stat() (*disk.Info, error) { return h.info, nil }
func (h *handle) Close() error              { return nil }

// ReadAt reads through the cache.
func (h *handle) ReadAt(p []byte, off int64) (n int, err error) {
	switch {
	case h.o == nil:
		return 0, failed("read", h.info.Of, syscall.EISDIR)
	case off < 0:
		return 0, failed("read", h.info.Of, fs.ErrInvalid)
	}
	for n < len(p) && off+int64(n) < h.o.size {
		got, err := h.read(p[n:], off+int64(n))
		if err != nil {
			return n, err
		}
		n += got
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// read reads the bytes of one piece.
func (h *handle) read(p []byte, off int64) (int, error) {
	size := h.f.cache.size
	at := off / size
	last := (min(off+int64(len(p)), h.o.size) - 1) / size
	piece, err := h.f.cache.takePiece(h, at, int(last-at)+1)
	if err != nil {
		return 0, err
	}
	if piece == nil {
		return h.o.kept.Load().read(p[:min(int64(len(p)), h.o.size-off)], off), nil // 0: it is not kept any more
	}
	n := copy(p, piece.buf[off-at*size:])
	h.f.cache.release(piece, off+int64(n) == at*size+int64(len(piece.buf)))
	return n, nil
}
