package lmdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// dataFile holds all data; lockFile is only queried for lock holders.
const (
	dataFile = "data.mdb"
	lockFile = "lock.mdb"
)

// env is an open environment.
type env struct {
	f     *disk.File
	path  string
	size  int64 // of the file
	meta  meta
	opts  store.Options
	views []*keyspace

	reported sync.Map // damaged pages, by number, and duplicate keys, by hash

	refused    sync.Map // errors of pages that the medium cannot read, by number
	anyRefused atomic.Bool
}

var _ store.Opener = Open

// Open opens the environment in dir. It is a store.Opener.
func Open(_ context.Context, dir string, o *store.Options) (store.Store, error) {
	var opts store.Options
	if o != nil {
		opts = *o
	}
	e, err := openEnv(dir, opts)
	if err != nil {
		return nil, err
	}
	if err := checkLive(dir, opts.AllowLive); err != nil {
		e.Close()
		return nil, err
	}
	if e.views, err = e.list(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// checkLive refuses an environment that a process has open, even if the user accepts the risk. While it is open, LMDB
// holds a shared lock on the first byte of the lock file.
func checkLive(dir string, allow bool) error {
	err := store.CheckLive(dir, lockFile)
	if err = store.Advise(err, "LMDB files change in place and cannot be read safely while the server runs: stop the server, or read a copy "+
		"made by mdb_copy"); errors.As(err, new(*store.LiveError)) {
		return err
	}
	if allow {
		return nil // the lock cannot be queried: the risk that the user accepted
	}
	return err
}

// Peek returns the names of the databases in dir, for detection.
func Peek(dir string) ([]string, error) {
	e, err := openEnv(dir, store.Options{})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	views, err := e.list()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(views))
	for i, k := range views {
		names[i] = k.name
	}
	return names, nil
}

func openEnv(dir string, opts store.Options) (*env, error) {
	path := disk.Join(dir, dataFile)
	f, err := store.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no %s: %w", dir, dataFile, store.ErrNotStore)
	}
	if errors.Is(err, store.ErrNotRegular) {
		return nil, fmt.Errorf("%w: %w", err, store.ErrNotStore)
	}
	if err != nil {
		return nil, err
	}
	e := &env{f: f, path: path, opts: opts}
	if err := e.open(); err != nil {
		f.Close()
		return nil, err
	}
	return e, nil
}

func (e *env) open() error {
	st, err := e.f.Stat()
	if err != nil {
		return err
	}
	if err := e.opts.Sources.Add(e.path, st); err != nil {
		return err
	}
	e.size = st.Size()
	e.meta, err = e.newestMeta()
	return err
}

// newestMeta returns the valid meta page of the newest transaction. LMDB writes the two alternately, so one damaged
// meta page is tolerated, but the state may then be one transaction old.
func (e *env) newestMeta() (meta, error) {
	first, err := e.metaAt(0)
	if err != nil {
		return e.secondMeta(err)
	}
	second, err := e.metaAt(int64(first.psize))
	if err != nil {
		e.reportMeta(int64(first.psize), err)
		return first, nil
	}
	if second.txn > first.txn && second.psize == first.psize {
		return second, nil
	}
	return first, nil
}

// secondMeta finds meta page 1 if page 0, which has the page size, is damaged.
func (e *env) secondMeta(damage error) (meta, error) {
	for size := minPageSize; size <= maxPageSize; size *= 2 {
		if m, err := e.metaAt(int64(size)); err == nil && m.psize == size {
			e.reportMeta(0, damage)
			return m, nil
		}
	}
	return meta{}, fmt.Errorf("%w: neither meta page is valid", shift(damage, e.path, "", 0))
}

func (e *env) reportMeta(off int64, err error) {
	if e.opts.Report == nil {
		return
	}
	e.opts.Report(record.Finding{Kind: "lmdb-meta-page", Severity: record.Warning,
		Place:  record.Place{File: dataFile, Off: off, Level: -1},
		Detail: fmt.Sprintf("a meta page is damaged (%v); kvferry uses the other one, which may be one transaction older", err)})
}

func (e *env) metaAt(off int64) (meta, error) {
	b := make([]byte, pageHeader+metaSize)
	n, _, err := disk.ReadAt(e.f, b, off)
	if err != nil && err != io.EOF {
		return meta{}, err
	}
	return decodeMeta(b[:n])
}

// read reads len(buf) bytes at the start of a page.
func (e *env) read(buf []byte, num uint64) error {
	if num < 2 || num > e.meta.lastPage {
		return corrupt(0, "page", "have number %d, want 2 to %d", num, e.meta.lastPage)
	}
	psize := uint64(e.meta.psize)
	if num > uint64(e.size)/psize || uint64(e.size)-num*psize < uint64(len(buf)) {
		return corrupt(0, "page", "page %d is beyond the end of the file at %d: %w", num, e.size, record.ErrShort)
	}
	if err := e.refusedAt(num); err != nil {
		return err
	}
	_, _, err := disk.ReadAt(e.f, buf, int64(num*psize))
	e.refuse(num, err)
	return err
}

// refuse records a page that the medium cannot read. It is not requested again, so that all readers see the same rows.
func (e *env) refuse(num uint64, err error) {
	if errors.Is(err, syscall.EIO) {
		e.refused.Store(num, err)
		e.anyRefused.Store(true)
	}
}

// refusedAt returns the recorded error of a page.
func (e *env) refusedAt(num uint64) error {
	if !e.anyRefused.Load() {
		return nil
	}
	refused, _ := e.refused.Load(num)
	err, _ := refused.(error)
	return err
}

func (e *env) offset(num uint64) int64 { return int64(num) * int64(e.meta.psize) }

// list reads the main database: each row is a named database.
func (e *env) list() ([]*keyspace, error) {
	main := &keyspace{env: e, tree: e.meta.main, cmp: store.Bytewise}
	if err := main.checkTreeFlags(); err != nil {
		return nil, shift(err, e.path, main.label(), 0)
	}
	c := newCursor(main)
	var out []*keyspace
	own := 0
	for {
		n, err := c.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if n.flags != nodeSub {
			own++
			continue
		}
		k, err := e.database(string(n.key), n.data)
		if err != nil {
			return nil, shift(err, e.path, string(n.key), e.offset(c.leafPage()))
		}
		out = append(out, k)
	}
	if own > 0 {
		main.skipSub = true
		out = append([]*keyspace{main}, out...)
	}
	return out, nil
}

func (e *env) database(name string, data []byte) (*keyspace, error) {
	switch n := len(data); {
	case n < treeSize:
		return nil, corrupt(0, "database", "have %s bytes, want %s", record.Number(n), record.Number(treeSize))
	case n > treeSize:
		return nil, corrupt(treeSize, "database", "have %s bytes, want %s: %w", record.Number(n), record.Number(treeSize),
			record.ErrTrailing)
	}
	k := &keyspace{env: e, name: name, tree: decodeTree(data), cmp: e.order(name)}
	if err := k.tree.check(&e.meta, 0); err != nil {
		return k, err
	}
	if err := k.checkTreeFlags(); err != nil {
		k.leaveOut(err)
	}
	return k, nil
}

// order returns the expected order of a database.
func (e *env) order(name string) store.Comparer {
	if e.opts.Order != nil {
		if c := e.opts.Order(name); c != nil {
			return *c
		}
		return store.Bytewise
	}
	if len(e.opts.Comparers) > 0 {
		return e.opts.Comparers[0]
	}
	return store.Bytewise
}

// Keyspaces returns the named databases, sorted by name. The main database comes first, with an empty name, if it has
// rows of its own.
func (e *env) Keyspaces() []store.Keyspace {
	out := make([]store.Keyspace, len(e.views))
	for i, k := range e.views {
		out[i] = k
	}
	return out
}

// Files returns the data file; its size covers the pages in use, because the file may be sparse.
func (e *env) Files() []store.File {
	f := store.File{Path: dataFile, Kind: "data", Level: -1}
	f.Size = min(e.size, e.offset(min(e.meta.lastPage, uint64(e.size))+1))
	for _, k := range e.views {
		f.Entries += int64(k.tree.entries)
	}
	return []store.File{f}
}

// Close closes the file.
func (e *env) Close() error { return e.f.Close() }
