package rocksfile

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Read windows: a cursor reads ahead of itself into a buffer that starts small, doubles while reading
// goes on without a jump, and is bounded so that all cursors together keep to the store's memory. When that is lent
// out, as hundreds of tables in each of dozens of iterators have it, no more is kept beyond the block that is wanted.
const (
	minWindow   = 8 << 10
	firstWindow = 32 << 10
	maxWindow   = 256 << 10
)

// windows lends the buffers.
type windows struct {
	memory int64 // for all of them
	users  atomic.Int64
	lent   atomic.Int64 // bytes
	pools  [8]sync.Pool // of *[]byte, minWindow<<i
}

// limit is how large a window may be just now.
func (w *windows) limit() int {
	n := w.memory / max(w.users.Load(), 1)
	return int(min(max(n, minWindow), maxWindow))
}

// crowded reports whether more is lent than there is memory for.
func (w *windows) crowded() bool { return w.lent.Load() > w.memory }

// class returns the pool for a size and the size it holds.
func class(n int) (pool, size int) {
	if n <= minWindow {
		return 0, minWindow
	}
	i := bits.Len(uint(n-1)) - bits.Len(uint(minWindow-1))
	return i, minWindow << i
}

// get lends a buffer of at least n bytes.
func (w *windows) get(n int) []byte {
	i, size := class(n)
	if i >= len(w.pools) {
		w.lent.Add(int64(n))
		return make([]byte, n)
	}
	w.lent.Add(int64(size))
	if b, ok := w.pools[i].Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, size)
}

// put takes a buffer back.
func (w *windows) put(b []byte) {
	w.lent.Add(-int64(cap(b)))
	if i, size := class(cap(b)); i < len(w.pools) && size == cap(b) {
		b = b[:size]
		w.pools[i].Put(&b)
	}
}

// window is the part of a table's file that a cursor has in memory.
type window struct {
	all  *windows
	buf  []byte
	file *dataFile
	off  int64 // of buf in file
	n    int   // bytes of buf that are valid
	step int   // how much to read next
}

// open starts reading a file.
func (w *window) open(f *dataFile) {
	w.file, w.off, w.n = f, 0, 0
	if w.step == 0 {
		w.all.users.Add(1)
	}
	w.step = firstWindow
}

// close gives the buffer back.
func (w *window) close() {
	if w.step > 0 {
		w.all.users.Add(-1)
		w.step = 0
	}
	w.giveBack()
	w.file = nil
}

// giveBack returns the buffer to the pool: the next block is read anew.
func (w *window) giveBack() {
	if w.buf != nil {
		w.all.put(w.buf)
		w.buf, w.n = nil, 0
	}
}

// block returns the stored bytes of a block with its trailer, verified to lie in the file. They
// live until the next call.
func (w *window) block(h blockHandle) ([]byte, error) {
	off, need := int64(h.off), int(h.size)+blockTrailer
	if w.file.mem != nil {
		return w.file.mem[off : off+int64(need)], nil
	}
	if off < w.off || off+int64(need) > w.off+int64(w.n) {
		if err := w.read(off, need); err != nil {
			return nil, err
		}
	}
	at := off - w.off
	return w.buf[at : at+int64(need)], nil
}

// read moves the window to off.
func (w *window) read(off int64, need int) error {
	limit := w.all.limit()
	if end := w.off + int64(w.n); off < w.off || off > end+int64(w.n) {
		w.step = firstWindow
	}
	if w.all.crowded() {
		limit = need
	}
	n := int(min(int64(max(need, min(w.step, limit))), w.file.size-off))
	if cap(w.buf) < n || cap(w.buf) > 2*max(limit, n, minWindow) {
		w.giveBack()
		w.buf = w.all.get(n)
	}
	w.off, w.n = off, 0
	err := w.file.readAt(w.buf[:n], off)
	if err != nil && n > need { // what cannot be read may be behind what is wanted
		n = need
		err = w.file.readAt(w.buf[:n], off)
	}
	if err != nil {
		return err
	}
	w.n = n
	w.step = min(2*w.step, maxWindow)
	return nil
}

// load returns a block of t, verified and decompressed: a view of the window or of dst, which it
// returns for reuse.
func (w *window) load(t *table, h blockHandle, dst []byte) (b, reuse []byte, err error) {
	if err := h.check(t.file.size); err != nil {
		return nil, dst, err
	}
	raw, err := w.block(h)
	if err != nil {
		return nil, dst, err
	}
	n := h.size
	if err := checkBlock(t.info.checksum, raw[:n+1], binary.LittleEndian.Uint32(raw[n+1:])); err != nil {
		return nil, dst, err
	}
	codec := t.codec(raw[n])
	if codec == codecNone {
		return raw[:n], dst, nil
	}
	out, err := t.unpack(dst, codec, raw[:n])
	if w.all.crowded() {
		w.giveBack()
	}
	if err != nil {
		return nil, dst, err
	}
	return out, out, nil
}
