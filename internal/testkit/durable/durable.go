//go:build unix

// Package durable records which files are durable when they get a name that users see.
package durable

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
)

// Recorder records, by inode, the files and directories that are durable, and at each rename or link the remaining ones.
type Recorder struct {
	mu     sync.Mutex
	synced map[uint64]int // the call that last synced it; 0: something was written since
	calls  int
	moved  map[uint64]move
	half   []string // not yet durable in a renamed directory; unfinished data does not count, since a run restores it
}

// move is the last time that a file or directory got a new name.
type move struct {
	at      int
	missing []string // files and directories not durable then
}

func inode(path string) uint64 {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// observe is called before each system call on files.
func (d *Recorder) observe(op, path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	switch op {
	case "sync":
		d.synced[inode(path)] = d.calls
	case "write", "truncate":
		delete(d.synced, inode(path))
	case "create", "mkdir":
		delete(d.synced, inode(filepath.Dir(path)))
	case "rename", "link":
		m := move{d.calls, d.missing(path)}
		d.moved[inode(path)] = m
		if st, err := os.Stat(path); err == nil && st.IsDir() && !strings.Contains(path, ".kvferry/data") {
			d.half = append(d.half, m.missing...)
		}
		delete(d.synced, inode(filepath.Dir(path)))
	}
	return nil
}

// missing lists files and directories at and below a path that are not durable.
func (d *Recorder) missing(root string) (out []string) {
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && d.synced[inode(path)] == 0 {
			out = append(out, path)
		}
		return nil
	})
	return out
}

// Record records calls on files until the end of the test, which must not run in parallel with others.
func Record(t testing.TB) *Recorder {
	d := &Recorder{synced: map[uint64]int{}, moved: map[uint64]move{}}
	t.Cleanup(disk.Inject(d.observe))
	return d
}

// Check requires that all of a file or directory was synced before the rename that made it appear, and the directory
// that has its name afterwards. If the machine crashes, the target is complete or absent.
func (d *Recorder) Check(t testing.TB, path string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := filepath.Dir(path)
	relative := func(paths []string) string { return strings.ReplaceAll(strings.Join(paths, " "), dir+"/", "") }
	m, appeared := d.moved[inode(path)]
	switch {
	case !appeared:
		t.Errorf("%s did not appear by a rename", path)
	case len(m.missing) > 0:
		t.Errorf("not durable when it appeared: %s", relative(m.missing))
	case d.synced[inode(dir)] < m.at:
		t.Errorf("its directory was synced by call %d, and it appeared with call %d", d.synced[inode(dir)], m.at)
	}
	if len(d.half) > 0 {
		t.Errorf("not durable when its directory was renamed: %s", relative(d.half))
	}
}
