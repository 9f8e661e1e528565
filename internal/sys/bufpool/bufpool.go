// Package bufpool manages buffers that are reused.
package bufpool

import (
	"encoding/base64"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
)

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

// made is the size of the large buffers allocated since Make last ran the garbage collector.
var made atomic.Int64

// Make allocates a buffer. It runs the garbage collector after each eighth of the memory limit in large buffers. The
// runtime alone would start collecting only when memory is short, and allocate more while it collects.
func Make(n int) []byte {
	if n > Large {
		if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 && made.Add(int64(n)) > limit/8 {
			made.Store(0)
			runtime.GC()
		}
	}
	return make([]byte, n)
}

// Spill writes out the text in a buffer and returns the buffer empty. Large values pass through it in pieces, so that
// their text is never in memory as a whole. Errors are reported when the rest of the text is written.
type Spill func(text []byte) []byte

// Piece is the number of bytes of a value to encode at a time. It is divisible by 3, so that base64 of a piece has no
// padding.
const Piece = 48 << 10

// Long reports whether a value is written in pieces.
func (s Spill) Long(b []byte) bool { return s != nil && len(b) > Piece }

// Append appends a value unchanged.
func (s Spill) Append(dst, b []byte) []byte {
	for s.Long(b) {
		dst, b = s(append(dst, b[:Piece]...)), b[Piece:]
	}
	return append(dst, b...)
}

// AppendBase64 appends a value in standard base64.
func (s Spill) AppendBase64(dst, b []byte) []byte {
	for s.Long(b) {
		dst, b = s(base64.StdEncoding.AppendEncode(dst, b[:Piece])), b[Piece:]
	}
	return base64.StdEncoding.AppendEncode(dst, b)
}
