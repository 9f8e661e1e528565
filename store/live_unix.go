//go:build unix

package store

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kvferry/internal/sys/disk"
)

// CheckLive returns a LiveError if another process holds the lock file of a database. It opens the file for reading and
// takes no lock. Without the file, no process holds the database.
func CheckLive(dir, lock string) error {
	if disk.IsMounted(dir) { // a lock that was copied there says nothing
		return nil
	}
	f, err := OpenRegular(filepath.Join(dir, lock))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	held := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &held); err != nil {
		return &fs.PathError{Op: "fcntl", Path: f.Name(), Err: err}
	}
	if held.Type == unix.F_UNLCK {
		return nil
	}
	return &LiveError{Dir: dir, PID: int(held.Pid)}
}
