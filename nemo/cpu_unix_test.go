//go:build unix

package nemo_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time used by the process; load from other processes does not shorten it.
func cpuTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
