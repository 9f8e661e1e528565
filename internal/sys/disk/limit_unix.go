//go:build unix

package disk

import (
	"math"

	"golang.org/x/sys/unix"
)

// MaxOpen returns the number of files that this process may have open. The Go runtime raises the soft limit to the
// hard limit before main starts.
func MaxOpen() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return defaultMaxOpen
	}
	n := uint64(r.Cur) // an int64 on some systems, but never negative there
	if n+1 == uint64(r.Max) {
		n++ // the runtime may leave the soft limit one below the hard one
	}
	return int(min(n, math.MaxInt32))
}
