//go:build unix

package rocksfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kvferry/store"
)

// checkLive returns a LiveError when another process holds the lock of the database. It only
// asks: the LOCK file is opened for reading, and nothing is locked.
func checkLive(dir string) error {
	f, err := os.Open(filepath.Join(dir, "LOCK"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return &fs.PathError{Op: "fcntl", Path: f.Name(), Err: err}
	}
	if lock.Type == unix.F_UNLCK {
		return nil
	}
	return &store.LiveError{Dir: dir, PID: int(lock.Pid)}
}
