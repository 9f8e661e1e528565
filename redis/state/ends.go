package state

import (
	"slices"
	"strings"
)

// ends holds the first and the last keys of sorted sets and streams: queues and trimmed streams take their elements from
// an end again and again. Without it each command would open an iterator of the store, and pass all elements that were
// removed before.
type ends struct {
	windows map[uint64]*[2]window // by id: forwards, backwards
	bytes   int
	limit   int // of bytes
}

// window holds the keys at an end of a value, without their prefix.
type window struct {
	keys    []string // in the order of the walk
	last    string   // keys up to here are in the window
	all     bool     // keys after it, too
	next    int      // number of keys to read; 0: none was read yet
	changes int
}

// A window grows as it is used up, from windowLeast to windowMost keys.
const (
	windowLeast = 16
	windowMost  = 512
	windowBytes = 64 << 10
	windowKey   = 32 // memory of a key beside its bytes
)

func newEnds(limit int) *ends { return &ends{windows: map[uint64]*[2]window{}, limit: limit} }

// find returns the index of a key, or the index for it.
func (w *window) find(key string, back bool) (int, bool) {
	return slices.BinarySearchFunc(w.keys, key, func(a, b string) int { return order(a, b, back) })
}

// order compares two keys in the order of a walk.
func order(a, b string, back bool) int {
	if back {
		a, b = b, a
	}
	return strings.Compare(a, b)
}

// put adds a key that a value of this id got.
func (e *ends) put(id uint64, key []byte) {
	e.each(id, key, func(w *window, i int, found bool) {
		if found {
			return
		}
		w.keys = slices.Insert(w.keys, i, string(key))
		e.bytes += len(key) + windowKey
		if n := len(w.keys) / 2; n >= windowMost {
			for _, k := range w.keys[n:] {
				e.bytes -= len(k) + windowKey
			}
			w.keys, w.last, w.all = slices.Delete(w.keys, n, len(w.keys)), w.keys[n-1], false
		}
	})
	if e != nil && e.bytes > e.limit {
		clear(e.windows)
		e.bytes = 0
	}
}

// remove drops a key that a value of this id lost.
func (e *ends) remove(id uint64, key []byte) {
	e.each(id, key, func(w *window, i int, found bool) {
		switch {
		case !found:
			return
		case i == 0:
			w.keys = w.keys[1:]
		default:
			w.keys = slices.Delete(w.keys, i, i+1)
		}
		e.bytes -= len(key) + windowKey
	})
}

// each calls f with the windows that key is or belongs in.
func (e *ends) each(id uint64, key []byte, f func(w *window, i int, found bool)) {
	if e == nil {
		return
	}
	both := e.windows[id]
	for n := 0; both != nil && n < 2; n++ {
		w := &both[n]
		if w.next > 0 && (w.all || order(string(key), w.last, n > 0) <= 0) {
			w.changes++
			i, found := w.find(string(key), n > 0)
			f(w, i, found)
		}
	}
}

// fill reads the next keys of the store into an empty window.
func (s *State) fill(w *window, prefix []byte, back bool) {
	from := w.from(back)
	w.next = min(max(2*w.next, windowLeast), windowMost)
	w.keys, w.all = nil, true
	size := 0
	s.walk(prefix, from, back, func(key, _ []byte) bool {
		if w.all = len(w.keys) < w.next && size < windowBytes; w.all {
			w.keys, w.last = append(w.keys, string(key)), string(key)
			size += len(key) + windowKey
		}
		return w.all
	})
	s.ends.bytes += size
}

// from returns the position in the store where the window ends.
func (w *window) from(back bool) []byte {
	switch {
	case w.next == 0:
		return nil
	case back:
		return []byte(w.last)
	}
	return append([]byte(w.last), 0)
}

// inOrder calls f with the keys of the rows of a kind in order, or backwards, until f returns false. f may change the value.
// The keys come without the kind.
func (v *Value) inOrder(kind byte, back bool, f func(key []byte) bool) {
	s, prefix := v.s, dataKey(v.id, []byte{kind})
	walk := func(from []byte) { s.walk(prefix, from, back, func(key, _ []byte) bool { return f(key) }) }
	if s.ends == nil {
		walk(nil)
		return
	}
	both := s.ends.windows[v.id]
	if both == nil {
		both = new([2]window)
		s.ends.windows[v.id] = both
	}
	w := &both[0]
	if back {
		w = &both[1]
	}
	if len(w.keys) == 0 && !w.all {
		s.fill(w, prefix, back)
	}
	for at := 0; at < len(w.keys); at++ {
		key, changes := w.keys[at], w.changes
		if !f([]byte(key)) {
			return
		}
		if w.changes > changes {
			var there bool
			if at, there = w.find(key, back); !there {
				at--
			}
		}
	}
	if !w.all {
		walk(w.from(back))
	}
}
