package blackwidow

import (
	"io"

	"kvferry/record"
)

// arenaSize is how many bytes of elements a batch copies. Rows are views into their iterators, so a batch
// of more than one has to.
const arenaSize = 64 << 10

// batch holds the elements that were handed out last.
type batch struct {
	arena   []byte
	holding bool // elem came, but did not fit
}

// fill sets elements of dst that live until the next call. It returns io.EOF after the last.
func (r *collectionReader) fill(dst []record.Element) (int, error) {
	b := &r.batch
	if b.arena == nil {
		b.arena = make([]byte, 0, arenaSize)
	}
	b.arena = b.arena[:0]
	n := 0
	for ; n < len(dst); n++ {
		if !b.holding {
			ok, err := r.row()
			if err != nil {
				return n, err
			}
			if !ok {
				break
			}
		}
		b.holding = false
		if size := len(r.elem.Name) + len(r.elem.Value); size > cap(b.arena)-len(b.arena) {
			if n > 0 {
				b.holding = true
				return n, nil
			}
			dst[0] = r.elem // large and alone: a view does
			return 1, nil
		}
		d := &dst[n]
		d.Name, d.Value, d.Score = b.keep(r.elem.Name), b.keep(r.elem.Value), r.elem.Score
	}
	if n == 0 && len(dst) > 0 {
		if err := r.complete(); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	return n, nil
}

// keep copies bytes into the arena, which has room.
func (b *batch) keep(v []byte) []byte {
	if len(v) == 0 {
		return nil
	}
	start := len(b.arena)
	b.arena = append(b.arena, v...)
	return b.arena[start:len(b.arena):len(b.arena)]
}
