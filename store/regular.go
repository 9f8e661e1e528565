package store

import (
	"errors"
	"fmt"
	"io"

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

// IsAccess reports whether the system denied access to a file, whose content may be sound.
func IsAccess(err error) bool { return disk.IsAccess(err) }
