//go:build unix

package disk

import (
	"math"

	"golang.org/x/sys/unix"
)

// MaxOpen is how many files this process may have open at once. The Go runtime raises the soft limit to the hard one
// before main starts.
func MaxOpen() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return defaultMaxOpen
	}
	n := uint64(r.Cur) // an int64 on some systems, where it is never negative
	if n+1 == uint64(r.Max) {
		n++ // what the runtime leaves
	}
	return int(min(n, math.MaxInt32))
}
