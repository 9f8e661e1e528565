package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCached drops the pages of a synced file from memory, or returns the reason why they may remain.
func dropCached(f *os.File) (why string) {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return "posix_fadvise: " + err.Error()
	}
	return ""
}
