package work

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"kvferry/format"
	"kvferry/internal/sys/disk"
)

// ExistsError means that the target or another output path exists and is not overwritten. It is an fs.ErrExist.
type ExistsError struct {
	Path string
	Todo string // remedy, appended to the message; "": the usual one
}

// Error names the path.
func (e *ExistsError) Error() string {
	todo := e.Todo
	if todo == "" {
		todo = ": name another path, or move it away"
	}
	return e.Path + ": already exists; kvferry does not overwrite it" + todo
}

// Unwrap returns fs.ErrExist.
func (e *ExistsError) Unwrap() error { return fs.ErrExist }

// CheckNew refuses a path that exists.
func CheckNew(path string) error {
	if err := disk.Dangling(path); err != nil {
		return err
	}
	_, err := disk.Lstat(path)
	switch {
	case err == nil:
		return &ExistsError{Path: path}
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return nil
	}
	return err
}

// CheckParent refuses a target whose directory does not exist.
func CheckParent(target string) error {
	parent := filepath.Dir(filepath.Clean(target))
	if err := disk.Dangling(parent); err != nil {
		return err
	}
	st, err := disk.Stat(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the directory %s does not exist; make it first", target, parent)
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s: %s is not a directory", target, parent)
	}
	return nil
}

// Nearest returns the nearest directory above a target that exists.
func Nearest(target string) (string, error) {
	for dir := filepath.Dir(filepath.Clean(target)); ; dir = filepath.Dir(dir) {
		if err := disk.Dangling(dir); err != nil {
			return "", err
		}
		st, err := disk.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir):
			continue
		case err == nil && !st.IsDir():
			err = fmt.Errorf("%s: %s is not a directory", target, dir)
		}
		return dir, err
	}
}

// isPath reports whether a source is on disk. Others are standard input and server addresses.
func isPath(source string) bool {
	if strings.Contains(source, "://") {
		_, err := disk.Lstat(source)
		return err == nil
	}
	return source != "-"
}

// CheckApart refuses a path inside the source. parent is its existing directory.
func CheckApart(source, parent, path string) error {
	if !isPath(source) {
		return nil
	}
	dst, err := Real(parent)
	if err != nil {
		return err
	}
	dirs, err := realDirs(source)
	if err != nil {
		return err
	}
	for _, src := range dirs {
		if dst == src || strings.HasPrefix(dst, strings.TrimSuffix(src, string(filepath.Separator))+string(filepath.Separator)) {
			return format.Usagef("%s: is inside the source %s, which kvferry must not change", path, source)
		}
	}
	return nil
}

// realDirs lists the real directories of a source: its own, and the targets of symbolic links below it.
func realDirs(source string) ([]string, error) {
	root, err := Real(source)
	if err != nil {
		return nil, err
	}
	out := []string{root}
	err = disk.WalkTree(root, func(rel string, info fs.FileInfo, linked bool) error {
		switch {
		case !info.IsDir():
			return nil
		case linked:
			dir, err := Real(disk.Join(root, filepath.FromSlash(rel)))
			if err != nil {
				return err
			}
			out = append(out, dir)
			return fs.SkipDir
		case strings.Count(rel, "/") >= maxDepth:
			return fs.SkipDir
		}
		return nil
	})
	return out, err
}

// CheckTemp refuses a directory for temporary files that does not exist or is inside the source.
func CheckTemp(source, temp string) error {
	if temp == "" {
		return nil
	}
	st, err := disk.Stat(temp)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the directory for temporary files does not exist", temp)
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%s: the directory for temporary files is not a directory", temp)
	}
	return CheckApart(source, temp, temp)
}

// CheckOutput refuses an output file that is a directory, whose directory is missing, or that is inside the source,
// also through links. It ignores "".
func CheckOutput(source, file string) error {
	if file == "" {
		return nil
	}
	st, err := disk.Stat(file)
	switch {
	case err == nil && st.IsDir():
		return fmt.Errorf("%s: is a directory", file)
	case err == nil && !st.Mode().IsRegular():
		return nil // a device or pipe: writing to it cannot change the source
	case err == nil:
		real, err := Real(file)
		if err != nil {
			return err
		}
		return CheckApart(source, filepath.Dir(real), file)
	}
	if err := CheckParent(file); err != nil {
		return err
	}
	return CheckApart(source, filepath.Dir(file), file)
}
