package disk

import (
	"hash/fnv"
	"io/fs"
	"math"
	"path/filepath"

	"golang.org/x/sys/windows"
)

func freeSpace(dir string) (Space, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Space{}, &fs.PathError{Op: "GetDiskFreeSpaceEx", Path: dir, Err: err}
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return Space{}, &fs.PathError{Op: "GetDiskFreeSpaceEx", Path: dir, Err: err}
	}
	h := fnv.New64a()
	h.Write([]byte(filepath.VolumeName(dir)))
	return Space{Free: int64(min(free, math.MaxInt64/2)), Device: h.Sum64()}, nil
}
