package disk

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
)

// Visit is called for each file and directory of a walk. rel is the path relative to the root, with forward slashes;
// "." is the root. info describes the target of a link, or the link itself if it is broken. linked is true if the
// path contains a link. fs.SkipDir skips the contents of a directory, and fs.SkipAll ends the walk.
type Visit func(rel string, info fs.FileInfo, linked bool) error

// WalkTree calls f for root and everything below it, in the order of names within each directory. It does not follow a
// link to a directory that contains the root or the link. An unreadable directory is an error, except behind a link,
// where Walk ignores it. The contents of a directory below root are skipped if permissions deny access.
func WalkTree(root string, f Visit) error {
	return WalkTreeTelling(root, f, func(string, error) {})
}

// WalkTreeTelling is like Walk, and calls closed for each directory below root that permissions deny access to.
func WalkTreeTelling(root string, f Visit, closed func(rel string, err error)) error {
	info, err := Stat(root)
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
	above  []fs.FileInfo // directories that contain the current entry
}

// above lists the directories that contain dir.
func above(dir string) ([]fs.FileInfo, error) {
	if IsMounted(dir) { // it has no links
		return nil, nil
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	var out []fs.FileInfo
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		info, err := Stat(parent)
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
	entries, err := list(Join(w.root, filepath.FromSlash(rel)))
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

// list returns the entries of a directory. It also fails if the names can be read but the entries cannot be accessed.
func list(dir string) ([]fs.DirEntry, error) {
	entries, err := ReadDir(dir)
	if err == nil && len(entries) > 0 {
		if _, closed := Lstat(Join(dir, entries[0].Name())); errors.Is(closed, fs.ErrPermission) {
			err = closed
		}
	}
	return entries, err
}

// entry walks an entry of a directory.
func (w *walker) entry(rel string, e fs.DirEntry, linked bool) error {
	link := e.Type()&fs.ModeSymlink != 0
	var info fs.FileInfo
	err := fs.ErrNotExist
	if link {
		info, err = Stat(Join(w.root, filepath.FromSlash(rel)))
	}
	if err != nil {
		info, err = e.Info()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed since ReadDir
		return nil
	case err != nil:
		return err
	case link && info.IsDir() && w.within(info):
		return nil
	}
	return w.walk(rel, info, linked || link)
}

// within reports whether dir contains the current entry.
func (w *walker) within(dir fs.FileInfo) bool {
	for _, a := range w.above {
		if SameFile(a, dir) {
			return true
		}
	}
	return false
}
