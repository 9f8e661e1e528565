package lsm

import "testing"

// WaitSmall makes blocks of so many bytes large, and values that are not copied when they wait.
func WaitSmall(t *testing.T, block, kept int) {
	was, wasKept := largeBlock, maxKept
	largeBlock, maxKept = block, kept
	t.Cleanup(func() { largeBlock, maxKept = was, wasKept })
}
