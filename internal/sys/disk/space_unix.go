//go:build linux || darwin

package disk

import (
	"io/fs"
	"math"

	"golang.org/x/sys/unix"
)

func freeSpace(dir string) (Space, error) {
	var fsys unix.Statfs_t
	if err := unix.Statfs(dir, &fsys); err != nil {
		return Space{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return Space{}, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	free := float64(fsys.Bavail) * float64(fsys.Bsize)
	return Space{Free: int64(min(free, math.MaxInt64/2)), Device: uint64(st.Dev)}, nil
}
