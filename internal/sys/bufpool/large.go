package bufpool

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// made is how many bytes of large buffers were made since garbage was last collected for them.
var made atomic.Int64

// Make makes a buffer. Large ones that were dropped are collected before they make up an eighth of the process's memory: the
// runtime starts to collect when memory is short, and grants more while it does.
func Make(n int) []byte {
	if n > Large {
		if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 && made.Add(int64(n)) > limit/8 {
			made.Store(0)
			runtime.GC()
		}
	}
	return make([]byte, n)
}
