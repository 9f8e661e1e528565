package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// Log is an append-only log: its files in load order.
type Log struct {
	Dir   string
	Files []string // names in Dir
	Sizes []int64

	parts bool                   // the log may have several files
	guess *guess                 // of a log without its manifest
	left  []*part                // files with commands that the manifest does not list
	seen  map[string]fs.FileInfo // the files and the manifest by path, as they were before reading
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
// directory with appendonlydir or appendonly.aof in it. The name of one file of a multi-part log finds the log.
func Find(location string) (*Log, error) {
	st, err := disk.Stat(location)
	if err != nil {
		return nil, err
	}
	dir, name := disk.Dir(location), filepath.Base(location)
	switch {
	case st.IsDir():
		return findIn(location)
	case strings.HasSuffix(location, manifestSuffix):
		return readManifest(location)
	case parsePart(name) != nil:
		return findPart(dir, name)
	}
	return newLog(dir, []string{name})
}

// findIn finds the log in a directory, or in one of its subdirectories: the default one, or the only one. The backups
// of Redis 8.10 (backupdir) are not the log of their server.
func findIn(location string) (*Log, error) {
	l, err := logIn(location)
	if !errors.Is(err, ErrNotLog) {
		return l, err
	}
	subs, backups, err := logDirs(location)
	if err != nil {
		return nil, err
	}
	old, err := single(location)
	if len(subs) == 0 && errors.Is(err, ErrNotLog) {
		subs = backups
	}
	switch {
	case err != nil && !errors.Is(err, ErrNotLog) || err == nil && len(subs) == 0:
		return old, err
	case len(subs) == 0:
		return nil, fmt.Errorf("%s: %w here: neither a manifest nor *.aof; name the file or its directory", location,
			ErrNotLog)
	case len(subs) > 1 && subs[0] != disk.Join(location, logDir):
		return nil, fmt.Errorf("%s: has several logs, in %s and %s: name one", location, subs[0], subs[1])
	}
	l, err = logIn(subs[0])
	if old != nil && err == nil && l.guess != nil { // without a manifest, servers load the older file
		return old, nil
	}
	return l, err
}

// logDirs lists the subdirectories with a log, the default one first, and the subdirectories with a backup.
func logDirs(location string) (out, backups []string, err error) {
	entries, err := disk.ReadDir(location)
	for i := 0; i < len(entries) && err == nil; i++ {
		dir := disk.Join(location, entries[i].Name())
		if st, serr := disk.Stat(dir); serr != nil || !st.IsDir() {
			continue // deleted since, or a dangling link
		}
		switch names, rerr := disk.ReadDir(dir); {
		case disk.IsAccess(rerr): // another user's directory
		case rerr != nil:
			err = rerr
		case !slices.ContainsFunc(names, func(e fs.DirEntry) bool { return isManifest(e.Name()) || parsePart(e.Name()) != nil }):
		case entries[i].Name() == backupDir:
			backups = append(backups, dir)
		case entries[i].Name() == logDir:
			out = slices.Insert(out, 0, dir)
		default:
			out = append(out, dir)
		}
	}
	return out, backups, err
}

// logIn finds the log whose files lie in a directory itself.
func logIn(dir string) (*Log, error) {
	manifests, err := glob(dir, manifestSuffix)
	switch {
	case err != nil:
		return nil, err
	case len(manifests) > 1:
		return nil, fmt.Errorf("%s: has several manifests, %s and %s: name one", dir, manifests[0], manifests[1])
	case len(manifests) == 1:
		return readManifest(disk.Join(dir, manifests[0]))
	}
	return unlisted(dir, "")
}

// glob lists the names with a suffix in a directory, without the files that servers have not finished.
func glob(dir, suffix string) ([]string, error) {
	paths, err := disk.Glob(dir, "*"+suffix)
	var names []string
	for _, path := range paths {
		if name := filepath.Base(path); !strings.HasPrefix(name, unfinished) {
			names = append(names, name)
		}
	}
	return names, err
}

// unfinished begins the names of files that servers rename when they are complete.
const unfinished = "temp-"

func isManifest(name string) bool {
	return strings.HasSuffix(name, manifestSuffix) && !strings.HasPrefix(name, unfinished)
}

// single finds the only file of a server up to 6.2.
func single(dir string) (*Log, error) {
	names, err := glob(dir, ".aof")
	switch {
	case err != nil:
		return nil, err
	case len(names) > 1:
		return nil, fmt.Errorf("%s: has several append-only files and no manifest, %s and %s: name one", dir,
			disk.Join(dir, names[0]), disk.Join(dir, names[1]))
	case len(names) == 0:
		return nil, ErrNotLog
	}
	return newLog(dir, names)
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
		return nil, fmt.Errorf("%w; %s names it, and a server does not start without it: restore it from a copy", err, path)
	}
	if err == nil {
		l.seen[path], l.parts = st, true
		l.left = m.leftOut(path)
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
