package nemo

import (
	"io"

	"kvferry/record"
)

// arenaSize is how many bytes of elements a batch copies. Rows are views into their iterators, so a batch
// of more than one has to.
const arenaSize = 64 << 10

// batch gathers elements that come one at a time.
type batch struct {
	// next sets the next element, as a view that lives until it is called again.
	next    func(*record.Element) (bool, error)
	arena   []byte
	held    record.Element // came, but did not fit
	holding bool
	done    bool
}

// reset starts a record.
func (b *batch) reset() { b.holding, b.done = false, false }

// fill sets elements of dst that live until the next call. It returns io.EOF after the last.
func (b *batch) fill(dst []record.Element) (int, error) {
	if b.arena == nil {
		b.arena = make([]byte, 0, arenaSize)
	}
	b.arena = b.arena[:0]
	n := 0
	for n < len(dst) && !b.done {
		e := &dst[n]
		if b.holding {
			*e, b.holding = b.held, false
		} else if ok, err := b.next(e); err != nil {
			return n, err
		} else if !ok {
			b.done = true
			break
		}
		if size := len(e.Name) + len(e.Value); size > cap(b.arena)-len(b.arena) {
			if n > 0 {
				b.held, b.holding = *e, true
				break
			}
			return 1, nil // large and alone: a view does
		}
		e.Name, e.Value = b.keep(e.Name), b.keep(e.Value)
		n++
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// keep copies bytes into the arena, which has room.
func (b *batch) keep(v []byte) []byte {
	start := len(b.arena)
	b.arena = append(b.arena, v...)
	return b.arena[start:len(b.arena):len(b.arena)]
}
