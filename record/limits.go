package record

import "context"

// Numbers that all packages share.
const (
	// BatchLen is the largest number of rows or elements read at once: few enough to stay in the L1 cache.
	BatchLen = 64
	// CheckEvery is the number of rows, records or commands between checks of a context.
	CheckEvery = 256
	// DefaultMemory is the memory limit of readers, passes and shards whose caller sets none.
	DefaultMemory = 64 << 20
)

// Stopped returns why ctx ended, or nil. A loop calls it with its count of rounds; it asks ctx in one of CheckEvery.
func Stopped(ctx context.Context, n int) error {
	if n%CheckEvery != 0 {
		return nil
	}
	return context.Cause(ctx)
}
