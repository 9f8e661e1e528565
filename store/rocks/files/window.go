package files

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"kvferry/internal/sys/bufpool"
)

// Read windows: a cursor reads ahead into a buffer that starts small and doubles during sequential reading. Its size is
// limited so that all cursors together fit the store's memory. After a jump only the requested bytes are read, because
// sampling jumps again. If the memory is fully lent, as with hundreds of tables in each of dozens of iterators, a
// window holds only the requested block.
const (
	minWindow   = 8 << 10
	firstWindow = 32 << 10
	maxWindow   = 256 << 10
)

// Windows lends the buffers.
type Windows struct {
	Memory int64 // total for all windows
	Users  atomic.Int64
	lent   atomic.Int64 // bytes
	pools  [8]sync.Pool // of *[]byte, minWindow<<i
}

// limit is the current maximum size of a window.
func (w *Windows) limit() int {
	n := w.Memory / max(w.Users.Load(), 1)
	return int(min(max(n, minWindow), maxWindow))
}

// Crowded reports whether the lent buffers exceed the memory: a used block should then be given back.
func (w *Window) Crowded() bool { return w.All.crowded() }

// InUse returns the number of lent bytes and of windows.
func (w *Windows) InUse() (bytes, windows int64) { return w.lent.Load(), w.Users.Load() }

// crowded reports whether the lent buffers exceed the memory.
func (w *Windows) crowded() bool { return w.lent.Load() > w.Memory }

// class returns the pool for n bytes, n > 0, and the size of its buffers.
func class(n int) (pool, size int) {
	i := bits.Len(uint(n-1) / minWindow)
	return i, minWindow << i
}

// get lends a buffer of at least n bytes.
func (w *Windows) get(n int) []byte {
	i, size := class(n)
	if i >= len(w.pools) {
		w.lent.Add(int64(n))
		return bufpool.Make(n)
	}
	w.lent.Add(int64(size))
	if b, ok := w.pools[i].Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, size)
}

// put takes a buffer back.
func (w *Windows) put(b []byte) {
	w.lent.Add(-int64(cap(b)))
	if i, size := class(cap(b)); i < len(w.pools) && size == cap(b) {
		b = b[:size]
		w.pools[i].Put(&b)
	}
}

// Window is the part of a file that a cursor holds in memory.
type Window struct {
	All  *Windows
	buf  []byte
	file *File
	off  int64 // offset of buf in file
	n    int   // bytes of buf that are valid
	step int   // size of the next read
}

// Open starts reading a file.
func (w *Window) Open(f *File) {
	w.file, w.off, w.n = f, 0, 0
	if w.step == 0 {
		w.All.Users.Add(1)
	}
	w.step = firstWindow
}

// Close gives the buffer back.
func (w *Window) Close() {
	if w.step > 0 {
		w.All.Users.Add(-1)
		w.step = 0
	}
	w.GiveBack()
	w.file = nil
}

// GiveBack returns the buffer to the pool; the next block is read again.
func (w *Window) GiveBack() {
	if w.buf != nil {
		w.All.put(w.buf)
		w.buf, w.n = nil, 0
	}
}

// Read returns need bytes at off, which must lie in the file. They are valid until the next call.
func (w *Window) Read(off int64, need int) ([]byte, error) {
	if w.file.mem != nil {
		return w.file.mem[off : off+int64(need)], nil
	}
	if off < w.off || off+int64(need) > w.off+int64(w.n) {
		if err := w.move(off, need); err != nil {
			return nil, err
		}
	}
	at := off - w.off
	return w.buf[at : at+int64(need)], nil
}

// move moves the window to off.
func (w *Window) move(off int64, need int) error {
	limit := w.All.limit()
	if end := w.off + int64(w.n); off < w.off || off > end+int64(w.n) {
		w.step = 1
	}
	if w.All.crowded() {
		limit = need
	}
	n := int(min(int64(max(need, min(w.step, limit))), w.file.Size-off))
	if cap(w.buf) < n || cap(w.buf) > 2*max(limit, n, minWindow) {
		w.GiveBack()
		w.buf = w.All.get(n)
	}
	w.off, w.n = off, 0
	var err error
	if n > need {
		err = w.file.read(w.buf[:n], off)
	}
	if n == need || err != nil { // the unreadable bytes may be behind the requested ones
		n = need
		err = w.file.ReadFull(w.buf[:n], off)
	}
	if err != nil {
		return err
	}
	w.n = n
	w.step = min(max(2*w.step, firstWindow), maxWindow)
	return nil
}
