// Package tree walks a directory as programs that open its files see it: through symbolic links, which
// filepath.WalkDir does not follow.
package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"kvferry/internal/sys/disk"
)

// Visit is called for each file and directory of a walk, with its path relative to the root, "." for the
// root, in forward slashes, and what a link leads to. For a link that leads nowhere info is the link's own.
// Linked says that a link was followed on the way. fs.SkipDir leaves out what is below a directory, and
// fs.SkipAll ends the walk.
type Visit func(rel string, info fs.FileInfo, linked bool) error

// Walk calls f for root and all that is below it, in the order of names within each directory. A link to a
// directory that root or the link itself lies in is not followed. What cannot be read is an error, unless a
// link led there: it is not part of the tree then. What is in a directory below root that nobody may read is
// left out.
func Walk(root string, f Visit) error {
	return WalkTelling(root, f, func(string, error) {})
}

// WalkTelling is Walk that calls closed for each directory that nobody may read, and why.
func WalkTelling(root string, f Visit, closed func(rel string, err error)) error {
	info, err := disk.Stat(root)
	if err != nil {
		return err
	}
	w := walker{root: root, visit: f, closed: closed}
	if w.above, err = above(root); err != nil {
		return err
	}
	err = w.walk(".", info, false)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

type walker struct {
	root   string
	visit  Visit
	closed func(rel string, err error)
	above  []fs.FileInfo // directories that the one being walked lies in
}

// above lists the directories that dir lies in.
func above(dir string) ([]fs.FileInfo, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = disk.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	var out []fs.FileInfo
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		info, err := disk.Stat(parent)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

func (w *walker) walk(rel string, info fs.FileInfo, linked bool) error {
	if err := w.visit(rel, info, linked); err != nil || !info.IsDir() {
		return err
	}
	w.above = append(w.above, info)
	defer func() { w.above = w.above[:len(w.above)-1] }()
	entries, err := list(filepath.Join(w.root, filepath.FromSlash(rel)))
	switch {
	case err != nil && linked:
		return nil
	case rel != "." && errors.Is(err, fs.ErrPermission):
		w.closed(rel, err)
		return nil
	case err != nil:
		return err
	}
	for _, e := range entries {
		if err := w.entry(path.Join(rel, e.Name()), e, linked); err != nil && !errors.Is(err, fs.SkipDir) {
			return err
		}
	}
	return nil
}

// list returns what is in a directory. One whose names may be read, but nothing behind them, cannot be read either.
func list(dir string) ([]fs.DirEntry, error) {
	entries, err := disk.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		if _, closed := disk.Lstat(filepath.Join(dir, entries[0].Name())); errors.Is(closed, fs.ErrPermission) {
			err = closed
		}
	}
	return entries, err
}

// entry walks one name of a directory.
func (w *walker) entry(rel string, e fs.DirEntry, linked bool) error {
	link := e.Type()&fs.ModeSymlink != 0
	var info fs.FileInfo
	err := fs.ErrNotExist
	if link {
		info, err = disk.Stat(filepath.Join(w.root, filepath.FromSlash(rel)))
	}
	if err != nil {
		info, err = e.Info()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // it went meanwhile
		return nil
	case err != nil:
		return err
	case link && info.IsDir() && w.within(info):
		return nil
	}
	return w.walk(rel, info, linked || link)
}

// within reports whether what is being walked lies in a directory.
func (w *walker) within(dir fs.FileInfo) bool {
	for _, a := range w.above {
		if os.SameFile(a, dir) {
			return true
		}
	}
	return false
}
