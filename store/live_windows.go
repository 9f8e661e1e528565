package store

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"

	"kvferry/internal/sys/disk"
)

// CheckLive returns a LiveError if another process holds the lock file of a database, which cannot be opened then.
// Without the file, no process holds the database.
func CheckLive(dir, lock string) error {
	if disk.IsMounted(dir) { // a lock that was copied there says nothing
		return nil
	}
	f, err := OpenRegular(filepath.Join(dir, lock))
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION), errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return &LiveError{Dir: dir}
	}
	return err
}
