package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCached drops the pages of a synced file from memory, or returns the reason why they may remain. F_NOCACHE alone
// does not drop existing pages.
func dropCached(f *os.File) (why string) {
	_, err := unix.FcntlInt(f.Fd(), unix.F_NOCACHE, 1)
	st, serr := f.Stat()
	if err != nil || serr != nil || st.Size() == 0 {
		return reason(err, serr)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return reason(err)
	}
	return reason(unix.Msync(b, unix.MS_INVALIDATE), unix.Munmap(b))
}

func reason(errs ...error) string {
	for _, err := range errs {
		if err != nil {
			return "F_NOCACHE, msync: " + err.Error()
		}
	}
	return ""
}
