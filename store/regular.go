package store

import (
	"errors"
	"fmt"
	"io"

	"kvferry/internal/disk"
)

// ErrNotRegular says that what has the name of a file is a directory, a pipe or a device.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a file that is a part of a dataset, for reading. What is no regular file is an error: to open a pipe
// would wait for whoever writes to it, which no signal ends, and a device may have no end.
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

// ReadHead reads a file of a dataset that has some text, and of a larger one its first most bytes.
func ReadHead(path string, most int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// IsAccess reports whether an error is that the system did not let a file be reached, which says nothing about what it has.
func IsAccess(err error) bool { return disk.IsAccess(err) }
