package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// Log is an append-only log: its files in load order.
type Log struct {
	Dir   string
	Files []string // names in Dir
	Sizes []int64

	seen map[string]fs.FileInfo // the files and the manifest by path, as they were before reading
}

// watch registers the files with sources, which detect changes.
func (l *Log) watch(sources *disk.Sources) (err error) {
	for path, st := range l.seen {
		err = errors.Join(err, sources.AddWhole(path, st))
	}
	return err
}

// Bytes returns the total size of the files.
func (l *Log) Bytes() (n int64) {
	for _, s := range l.Sizes {
		n += s
	}
	return n
}

// ErrNotLog means that a location has no append-only file.
var ErrNotLog = errors.New("no append-only file")

const manifestSuffix = ".manifest"

// Find finds the log at a location: a file of commands, a manifest, the directory of a manifest, or a server's
// directory with appendonlydir or appendonly.aof in it.
func Find(location string) (*Log, error) {
	st, err := disk.Stat(location)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		if strings.HasSuffix(location, manifestSuffix) {
			return readManifest(location)
		}
		return newLog(disk.Dir(location), []string{filepath.Base(location)})
	}
	manifests, err := manifests(location)
	switch {
	case err != nil:
		return nil, err
	case len(manifests) > 1:
		return nil, fmt.Errorf("%s: has several manifests, %s and %s: name one", location, manifests[0], manifests[1])
	case len(manifests) == 1:
		return readManifest(manifests[0])
	}
	return single(location)
}

// manifests lists the manifests in a directory, or if it has none, in its subdirectories.
func manifests(location string) ([]string, error) {
	out, err := disk.Glob(location, "*"+manifestSuffix)
	if err != nil || len(out) > 0 {
		return out, err
	}
	entries, err := disk.ReadDir(location)
	for i := 0; i < len(entries) && err == nil; i++ {
		dir := disk.Join(location, entries[i].Name())
		if st, serr := disk.Stat(dir); serr != nil || !st.IsDir() {
			continue // deleted since, or a dangling link
		}
		var more []string
		if more, err = disk.Glob(dir, "*"+manifestSuffix); disk.IsAccess(err) {
			err = nil // another user's directory
		}
		out = append(out, more...)
	}
	return out, err
}

// single finds the only file of a server up to 6.2.
func single(dir string) (*Log, error) {
	names, err := disk.Glob(dir, "*.aof")
	switch {
	case err != nil:
		return nil, err
	case len(names) > 1:
		return nil, fmt.Errorf("%s: has several append-only files and no manifest, %s and %s: name one", dir, names[0], names[1])
	case len(names) == 0:
		return nil, fmt.Errorf("%s: %w here: neither a manifest nor *.aof; name the file, or the directory that has it", dir, ErrNotLog)
	}
	return newLog(dir, []string{filepath.Base(names[0])})
}

// maxManifest bounds a manifest, which has one line per file.
const maxManifest = 16 << 20

// readManifest reads a manifest and checks that its files exist. It ignores files that are not listed.
func readManifest(path string) (*Log, error) {
	data, st, err := readLimited(path, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := DecodeManifest(data)
	var corrupt *record.CorruptError
	if errors.As(err, &corrupt) {
		corrupt.File = path
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range m.Loaded() {
		names = append(names, p.Name)
	}
	l, err := newLog(disk.Dir(path), names)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; %s names it, and a server does not start without it", err, path)
	}
	if err == nil {
		l.seen[path] = st
	}
	return l, err
}

// readLimited reads a file, and stats it first.
func readLimited(path string, most int64) ([]byte, fs.FileInfo, error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than %s bytes: this is not a manifest", path, record.Number(most))
	}
	return data, st, err
}

// readHead reads the first bytes of a file.
func readHead(path string) ([]byte, error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 6)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return head[:n], errors.Join(err, f.Close())
}

func newLog(dir string, names []string) (*Log, error) {
	l := &Log{Dir: dir, Files: names, seen: map[string]fs.FileInfo{}}
	for _, name := range names {
		st, err := disk.Stat(disk.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: not a regular file", disk.Join(dir, name))
		}
		l.Sizes = append(l.Sizes, st.Size())
		l.seen[disk.Join(dir, name)] = st
	}
	return l, nil
}

// isSnapshot reports whether a file starts with an RDB part.
func isSnapshot(head []byte) bool {
	return bytes.HasPrefix(head, []byte("REDIS")) || bytes.HasPrefix(head, []byte("VALKEY"))
}
