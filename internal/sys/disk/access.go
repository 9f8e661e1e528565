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

// IsAccess reports whether the system did not let a file be reached: no right to it, no descriptor left, a file system
// that is gone. Such an error says nothing about what the file has, and may be gone the next time. A file that is not
// there, or below another file, and bytes that the medium does not give back are no such errors.
func IsAccess(err error) bool {
	var path *fs.PathError
	var call *os.SyscallError
	var link *os.LinkError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrClosed), errors.Is(err, syscall.EIO):
		return false
	}
	return errors.As(err, &path) || errors.As(err, &call) || errors.As(err, &link)
}

// IsExhausted reports whether there was no descriptor left, of this process or of the system.
func IsExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Advice says what can be done about an error of access, "" where that is not known.
func Advice(err error) string {
	switch {
	case !IsAccess(err):
		return ""
	case errors.Is(err, syscall.EMFILE):
		return fmt.Sprintf("this process may have %d files open at once: raise the limit (ulimit -n 65536, LimitNOFILE=65536 in a unit of systemd) and run it again", MaxOpen())
	case errors.Is(err, syscall.ENFILE):
		return "the whole system has no descriptor left: raise its limit (on Linux fs.file-max) or close other programs, and run this again"
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() < 0: // Windows
		return "run it as a user who may reach the file"
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("kvferry runs as user %d: run it as a user who may, such as the owner of the files", os.Geteuid())
	}
	return ""
}

// tries is how often the medium is asked for what it refuses to give, and pause how long it gets in between.
const (
	tries = 3
	pause = 2 * time.Millisecond
)

// ReadAt is r.ReadAt, which is asked again when the medium refuses. A refusal that goes away is no error; refused is the
// last one there was.
func ReadAt(r io.ReaderAt, p []byte, off int64) (n int, refused, err error) {
	for i := 1; ; i++ {
		n, err = r.ReadAt(p, off)
		if !errors.Is(err, syscall.EIO) {
			return n, refused, err
		}
		if refused = err; i == tries {
			return n, refused, err
		}
		time.Sleep(pause)
	}
}

// again does what only reads, and does it again when the medium refuses.
func again[T any](do func() (T, error)) (T, error) {
	for i := 1; ; i++ {
		got, err := do()
		if i == tries || !errors.Is(err, syscall.EIO) {
			return got, err
		}
		time.Sleep(pause)
	}
}

// defaultMaxOpen is the limit where the system does not tell one.
const defaultMaxOpen = 1024

// Steady reads as ReadAt does.
type Steady struct{ R io.ReaderAt }

// ReadAt fills p.
func (s Steady) ReadAt(p []byte, off int64) (int, error) {
	n, _, err := ReadAt(s.R, p, off)
	return n, err
}
