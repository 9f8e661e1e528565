package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// IsAccess reports whether the system denied access to a file: no permission, no free descriptor, a file system that
// is gone, a file that changed while it was read. Such an error says nothing about the content and may not recur.
// Missing files and I/O errors of the medium do not count.
func IsAccess(err error) bool {
	var path *fs.PathError
	var call *os.SyscallError
	var link *os.LinkError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrClosed),
		errors.Is(err, syscall.EIO):
		return false
	}
	return errors.As(err, new(*ChangedError)) || errors.As(err, &path) || errors.As(err, &call) || errors.As(err, &link)
}

// IsExhausted reports whether this process or the system has no free file descriptor.
func IsExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Advice returns the remedy for an access error, or "" if none is known.
func Advice(err error) string {
	switch {
	case !IsAccess(err):
		return ""
	case errors.Is(err, syscall.EMFILE):
		return fmt.Sprintf("this process may have %d files open at once: raise the limit (ulimit -n 65536, LimitNOFILE=65536 in a unit of systemd) and run it again",
			MaxOpen())
	case errors.Is(err, syscall.ENFILE):
		return "the whole system has no descriptor left: raise its limit (on Linux fs.file-max) or close other programs, and run this again"
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() < 0: // Windows
		return "run it as a user who may reach the file"
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("kvferry runs as user %d: run it as a user who may, such as the owner of the files", os.Geteuid())
	}
	return ""
}

// tries is the number of attempts to read after I/O errors, with pause in between.
const (
	tries = 3
	pause = 2 * time.Millisecond
)

// ReadAt calls r.ReadAt and retries after an I/O error. If a retry succeeds, err is nil, and refused is the last I/O
// error.
func ReadAt(r io.ReaderAt, p []byte, off int64) (n int, refused, err error) {
	for i := 1; ; i++ {
		n, err = r.ReadAt(p, off)
		if !errors.Is(err, syscall.EIO) {
			return n, refused, err
		}
		refused = err
		if i == tries {
			return n, refused, err
		}
		time.Sleep(pause)
	}
}

// again calls do, which must only read, and retries after an I/O error.
func again[T any](do func() (T, error)) (T, error) {
	for i := 1; ; i++ {
		got, err := do()
		if i == tries || !errors.Is(err, syscall.EIO) {
			return got, err
		}
		time.Sleep(pause)
	}
}

// defaultMaxOpen is used if the system reports no limit.
const defaultMaxOpen = 1024

// Steady is an io.ReaderAt that retries like ReadAt.
type Steady struct{ R io.ReaderAt }

// ReadAt reads at an offset, see the function ReadAt.
func (s Steady) ReadAt(p []byte, off int64) (int, error) {
	n, _, err := ReadAt(s.R, p, off)
	return n, err
}
