package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeBack starts to write a part of a file to the disk. File systems that cannot do that leave it to Sync.
func writeBack(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
