package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"kvferry/internal/sys/disk"
)

// ErrNotRegular means that a directory, pipe or device has the name of a file.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a file of a dataset for reading. Anything but a regular file is an error: opening a pipe would wait
// for a writer, which no signal interrupts, and a device may be endless.
func OpenRegular(path string) (*disk.File, error) {
	st, err := disk.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	return disk.Open(path)
}

// ReadHead reads the first most bytes of a small file of a dataset.
func ReadHead(path string, most int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// Inside returns the path of a file of the dataset at root, without a link. Anything but a regular file is an
// ErrNotRegular, and so is a link out of both root and the directory of the file: what it leads to is not of the dataset,
// and a copy of the dataset must not reveal it.
func Inside(root, rel string) (string, error) {
	path := disk.Join(root, filepath.FromSlash(rel))
	st, err := disk.Lstat(path)
	switch {
	case err != nil:
		return "", err
	case st.Mode()&fs.ModeSymlink != 0:
		return linked(root, path)
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	return path, nil
}

// linked is Inside for a link.
func linked(root, path string) (string, error) {
	real, err := resolve(path)
	for _, dir := range []string{root, disk.Dir(path)} {
		home, unknown := resolve(dir)
		if err != nil || unknown != nil || !disk.Under(filepath.ToSlash(home), filepath.ToSlash(real)) {
			continue
		}
		if st, err := disk.Stat(real); err == nil && st.Mode().IsRegular() {
			return real, nil
		}
	}
	return "", fmt.Errorf("%s: %w, but a link that does not lead to a regular file of the dataset", path, ErrNotRegular)
}

// resolve returns an absolute path without links.
func resolve(path string) (string, error) {
	path, err := disk.Abs(path)
	if err != nil {
		return "", err
	}
	return disk.EvalSymlinks(path)
}

// IsAccess reports whether the system denied access to a file, whose content may be sound.
func IsAccess(err error) bool { return disk.IsAccess(err) }
