// Package bufpool manages buffers that are reused.
package bufpool

import "slices"

// Large is the size up to which buffers are kept for reuse and rows are copied freely. The memory limit accounts for
// larger ones individually.
const Large = 1 << 20

// Reset empties a buffer for reuse. It drops a buffer larger than Large, which would otherwise stay allocated as long
// as its owner, and there are many owners.
func Reset(b []byte) []byte {
	if cap(b) > Large {
		return nil
	}
	return b[:0]
}

// Room empties a buffer and makes room for n bytes. Large buffers get exactly that size.
func Room(b []byte, n int) []byte {
	if n <= cap(b) || n <= Large {
		return b[:0]
	}
	return Make(n)[:0]
}

// Grow makes room for n more bytes. Large buffers get exactly that size.
func Grow(b []byte, n int) []byte {
	if n <= cap(b)-len(b) || n <= Large {
		return slices.Grow(b, n)
	}
	return append(Make(len(b) + n)[:0], b...)
}

// ResetAll is Reset for several buffers.
func ResetAll(buffers ...*[]byte) {
	for _, b := range buffers {
		*b = Reset(*b)
	}
}

// Beside is an upper bound of the bytes that formats add to a value in its row.
const Beside = 64
