package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Glob lists the entries of a directory that match a pattern, in the order of names. Unlike filepath.Glob, it returns
// an error if the directory cannot be read. A missing directory has no entries.
func Glob(dir, pattern string) ([]string, error) {
	entries, err := ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		ok, err := filepath.Match(pattern, e.Name())
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// Readlink returns the target of a symbolic link.
func Readlink(path string) (string, error) {
	if err := check("readlink", path); err != nil {
		return "", err
	}
	if IsMounted(path) {
		return "", noLink(path)
	}
	return os.Readlink(path)
}

// Dangling returns an error if a path is a symbolic link to something that does not exist, else nil.
func Dangling(path string) error {
	to, err := Readlink(path)
	if err != nil {
		return nil
	}
	if _, err := Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s: a link to %s, which does not exist; mend the link, or name another path", path, to)
}

// EvalSymlinks returns a path with symbolic links resolved.
func EvalSymlinks(path string) (string, error) {
	if err := check("readlink", path); err != nil {
		return "", err
	}
	if f, name := mounted(path); f != nil { // it has no links
		_, err := f.Stat(name)
		return Address(path), err
	}
	return filepath.EvalSymlinks(path)
}

// WalkDir is filepath.WalkDir.
func WalkDir(root string, f fs.WalkDirFunc) error {
	return fs.WalkDir(dirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		return f(filepath.Join(root, filepath.FromSlash(name)), d, err)
	})
}

// dirFS is a directory as a file system.
type dirFS string

func (d dirFS) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

func (d dirFS) Open(name string) (fs.File, error)          { return Open(d.path(name)) }
func (d dirFS) Stat(name string) (fs.FileInfo, error)      { return Lstat(d.path(name)) }
func (d dirFS) ReadDir(name string) ([]fs.DirEntry, error) { return ReadDir(d.path(name)) }
