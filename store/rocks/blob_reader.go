package rocks

import "kvferry/internal/sys/bufpool"

// Windows of a Reader: it reads ahead while values are read in file order, in the current file and in a few recent
// ones.
const (
	window    = 16 << 10
	maxWindow = 8
)

// blobBuffer reads values for one goroutine. The zero value is ready to use.
type blobBuffer struct {
	windows [maxWindow]blobPart
	last    int // index of the window read last
	big     []byte
}

// blobPart is a section of a file in memory.
type blobPart struct {
	f   *blobData
	off int64
	b   []byte
	end int64 // of the value read last
}

// blobWindow estimates the memory of a Reader, without its largest value.
const blobWindow = window * maxWindow

// Value returns the verified, stored bytes of a value. They are valid until the next call.
func (r *blobBuffer) Value(f *blobData, x blobPointer, key []byte) ([]byte, error) {
	off, size, err := f.record(x, key)
	if err != nil {
		return nil, err
	}
	p := r.of(f)
	if off < p.off || off+size > p.off+int64(len(p.b)) {
		if err := r.read(p, off, size); err != nil {
			return nil, err
		}
	}
	b := r.big
	if p.b != nil {
		b = p.b[off-p.off:]
	}
	p.end = off + size
	return f.value(b[:size], off, key)
}

// of returns the window of a file; a new file takes over the next window in turn.
func (r *blobBuffer) of(f *blobData) *blobPart {
	if r.windows[r.last].f == f {
		return &r.windows[r.last]
	}
	for i := range r.windows {
		if r.windows[i].f == f {
			r.last = i
			return &r.windows[i]
		}
	}
	r.last = (r.last + 1) % maxWindow
	p := &r.windows[r.last]
	*p = blobPart{f: f, b: p.b[:0]}
	return p
}

// read moves a window to a record, and reads ahead if values are read in file order. A record larger than a window is
// read alone.
func (r *blobBuffer) read(p *blobPart, off, size int64) error {
	n := size
	if off == p.end || p.end == 0 {
		n = max(n, min(window, p.f.size-off))
	}
	if n > window {
		p.b = nil
		if int64(cap(r.big)) < size {
			r.big = nil
			r.big = bufpool.Make(int(size))
		}
		r.big = r.big[:size]
		return p.f.readAt(r.big, off)
	}
	if cap(p.b) < window {
		p.b = make([]byte, window)
	}
	p.off, p.b = off, p.b[:n]
	if err := p.f.readAt(p.b, off); err != nil {
		p.b = nil
		return err
	}
	return nil
}

// Trim frees the buffer of a value that was much larger than usual.
func (r *blobBuffer) Trim() {
	if cap(r.big) > maxWindow*window {
		r.big = nil
	}
}
