// Package bufpool is about buffers that are used again and again.
package bufpool

import "slices"

// Large is the size of the largest buffer that waits for its next use, and of the largest row that is copied in passing.
// A promise of memory counts larger ones one by one.
const Large = 1 << 20

// Reset empties a buffer for its next use. One that a large row has made large is given back: it would be held as long as
// its owner lives, and there are many owners.
func Reset(b []byte) []byte {
	if cap(b) > Large {
		return nil
	}
	return b[:0]
}

// Room empties a buffer and makes room for n bytes; large ones are made as large as that and no larger.
func Room(b []byte, n int) []byte {
	if n <= cap(b) || n <= Large {
		return b[:0]
	}
	return Make(n)[:0]
}

// Grow makes room for n more bytes; large ones are made as large as that and no larger.
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

// Beside is more than what formats put beside a value in its row.
const Beside = 64
