package bufpool

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

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
