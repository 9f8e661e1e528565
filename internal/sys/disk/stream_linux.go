package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// reserve gives a part of a file, beyond its end, room on the disk, on file systems where that was found to help.
func reserve(f *os.File, off, n int64) bool {
	var s unix.Statfs_t
	fd := int(f.Fd())
	if unix.Fstatfs(fd, &s) != nil || s.Type != unix.EXT4_SUPER_MAGIC && s.Type != unix.XFS_SUPER_MAGIC {
		return false
	}
	return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, n) == nil
}

// writeBack starts to write a part of a file to the disk. File systems that cannot do that leave it to Sync.
func writeBack(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
