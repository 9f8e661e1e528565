package sst

import (
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// AddGroup adds rows of a group until one starts a block, which changes Size, and returns the number of rows added.
func (w *Writer) AddGroup(g *store.Group) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	blocks := w.blocks
	for n := 0; n < len(g.Rows); n += w.addPlain(g, n) {
		if err := w.addOf(g, n); err != nil {
			return n, err
		}
		n++
		if w.blocks != blocks {
			return n, nil
		}
	}
	return len(g.Rows), nil
}

// addOf adds row n of a group.
func (w *Writer) addOf(g *store.Group, n int) error {
	r := &g.Rows[n]
	known := 0 // bytes known to be shared with the last key
	if n > 0 {
		known = len(g.Prefix)
	}
	key := append(append(append(w.next[:0], g.Prefix...), r.Key...), g.Tail...)
	if err := w.add(base.CommonPrefix(w.last, key, known), key, r.Value, g.End(n)); err != nil {
		return err
	}
	w.last, w.next = key, w.last
	return nil
}

// maxPlain bounds the size of keys and values that addPlain handles.
const maxPlain = 1 << 10

// addPlain adds rows of a group from row n on while they are small, ascending and fit the current block, and returns
// how many it added. Row n-1 is the last row of the table. It does the work of add for each row with local variables,
// and compares keys at their source: reading bytes that were just stored in other widths is slower.
func (w *Writer) addPlain(g *store.Group, n int) int {
	d := &w.data
	added := len(g.Prefix) + len(g.Tail)
	if n == len(g.Rows) || d.empty() || w.o.Format == LevelDB || added > maxPlain {
		return 0
	}
	var (
		from       = n
		before     = g.Rows[n-1].Key
		buf, at    = d.buf[:cap(d.buf)], len(d.buf)
		size       = d.size() - at // without the bytes up to at
		keys, vals = 0, 0
	)
	for ; n < len(g.Rows); n++ {
		key, value, end := g.Rows[n].Key, g.Rows[n].Value, g.End(n)
		row := added + len(key) + len(value) + len(end)
		if len(key) > maxPlain || len(value) > maxPlain || !hasRoom(size+at, row) ||
			at+maxLengths+row+base.TrailerLen > len(buf) {
			break
		}
		same := base.CommonPrefix(before, key, 0)
		if same >= len(key) || same >= len(before) ||
			!w.advance(len(g.Prefix)+same, before[same] < key[same], key[same:], g.Tail) {
			break // add decides
		}
		shared := len(g.Prefix) + same
		w.filter.Add(w.last, shared)
		keys, vals = keys+len(w.last), vals+len(value)+len(end)
		if d.left == 0 {
			d.restarts = append(d.restarts, uint32(at-d.start))
			d.left, shared = d.interval, 0
			size += 4
		}
		d.left--
		at += putRow(buf[at:], shared, w.last, w.trailer, value, end)
		before = key
	}
	rows := uint64(n - from)
	w.entries += int64(rows)
	w.keyBytes += uint64(keys) + rows*base.TrailerLen
	w.valueBytes += uint64(vals)
	d.buf = d.buf[:at]
	return n - from
}

// advance appends rest and tail to the first shared bytes of the last key, makes that the last key, and reports whether
// it ascends. less is the result of the bytewise comparison.
func (w *Writer) advance(shared int, less bool, rest, tail []byte) bool {
	if w.bytes {
		if less {
			w.last = append(append(w.last[:shared], rest...), tail...)
		}
		return less
	}
	next := append(append(append(w.next[:0], w.last[:shared]...), rest...), tail...)
	if w.o.Comparer.From(w.last, next, shared) >= 0 {
		return false
	}
	w.last, w.next = next, w.last
	return true
}
