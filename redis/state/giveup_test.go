package state

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/vfs"
)

// fullFS is a file system with room for a number of bytes.
type fullFS struct {
	vfs.FS
	left *atomic.Int64
}

type fullFile struct {
	vfs.File
	left *atomic.Int64
}

func (f fullFS) Create(name string) (vfs.File, error) {
	if f.left.Load() <= 0 {
		return nil, syscall.ENOSPC
	}
	file, err := f.FS.Create(name)
	return fullFile{file, f.left}, err
}

func (f fullFile) Write(b []byte) (int, error) {
	if f.left.Add(-int64(len(b))) < 0 {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// TestFullDisk: a disk that becomes full at any point is an error with advice; no call hangs and the process
// continues.
func TestFullDisk(t *testing.T) {
	for _, room := range []int64{0, 100, 20_000, 1 << 20, 5 << 20} {
		var left atomic.Int64
		left.Store(1 << 30)
		s, err := New(Options{TempDir: t.TempDir(), Memory: 1 << 20, fs: fullFS{vfs.Default, &left}})
		if err != nil {
			t.Fatal(err)
		}
		left.Store(room)
		value := []byte(strings.Repeat("0123456789abcdef", 4<<10))
		for i := 0; i < 1000 && err == nil; i++ {
			value[i%len(value)]++ // the table must stay incompressible
			s.SetString(fmt.Appendf(nil, "key%d", i), value, 0)
			err = s.Err()
		}
		if err == nil {
			err = s.Seal()
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "--temp-dir") {
			t.Errorf("room for %d bytes: %v", room, err)
		}
		s.SetString([]byte("a"), []byte("b"), 0)
		if err := s.Err(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d bytes, the next key: %v", room, err)
		}
		s.Close()
	}
}
