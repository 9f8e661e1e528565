//go:build unix

package lmdb

import (
	"os"
	"path/filepath"
	"syscall"

	"kvferry/store"
)

// holder returns a *store.LiveError when a process has the environment open. LMDB holds a shared lock on the
// first byte of the lock file for as long; asking for it needs no write access and takes no lock.
func holder(dir string) error {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return nil // no lock file, nobody holds it
	}
	defer f.Close()
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: 0, Start: 0, Len: 1}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l); err != nil || l.Type == syscall.F_UNLCK {
		return nil
	}
	return &store.LiveError{Dir: dir, PID: int(l.Pid)}
}
