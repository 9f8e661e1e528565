//go:build unix

package nemo_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what the process has used of all processors: other processes do not make it go faster.
func cpuTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
