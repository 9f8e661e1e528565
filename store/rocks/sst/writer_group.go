package sst

import (
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// AddGroup adds rows of a group up to one that begins a block, which makes Size another, and returns how many.
func (w *Writer) AddGroup(g *store.Group) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	blocks := w.blocks
	for n := 0; n < len(g.Rows); {
		more := w.addPlain(g, n)
		if n += more; n == len(g.Rows) {
			break
		}
		if err := w.addOf(g, n); err != nil {
			return n, err
		}
		if n++; w.blocks != blocks {
			return n, nil
		}
	}
	return len(g.Rows), nil
}

// addOf adds row n of a group.
func (w *Writer) addOf(g *store.Group, n int) error {
	r := &g.Rows[n]
	key := append(append(append(w.next[:0], g.Prefix...), r.Key...), g.Tail...)
	if err := w.add(base.CommonPrefix(w.last, key, known(g, n)), key, r.Value, g.End(n)); err != nil {
		return err
	}
	w.last, w.next = key, w.last
	return nil
}

// known is how many bytes the key of row n of a group is known to share with the last one.
func known(g *store.Group, n int) int {
	if n == 0 {
		return 0
	}
	return len(g.Prefix)
}

// sharedWith is how many bytes next, the key of row n of a group, shares with last, which from row from on is that of the
// row before. What it loads was not just put down.
func sharedWith(g *store.Group, n, from int, last, next []byte) int {
	if n > from {
		a, b := g.Rows[n-1].Key, g.Rows[n].Key
		if same := base.CommonPrefix(a, b, 0); same < len(a) && same < len(b) {
			return len(g.Prefix) + same
		}
	}
	return base.CommonPrefix(last, next, known(g, n))
}

// maxPlain bounds the parts of rows that addPlain adds.
const maxPlain = 1 << 10

// addPlain adds rows of a group, from row n on, as long as they are small, in order and go into the block being built,
// and returns how many. It does what add does to each, with all that changes at hand.
func (w *Writer) addPlain(g *store.Group, n int) int {
	d := &w.data
	if w.entries == 0 || d.empty() || w.o.Format == LevelDB || len(g.Prefix)+len(g.Tail) > maxPlain {
		return 0
	}
	var (
		from       = n
		last, room = w.last, w.next
		next       []byte
		buf, at    = d.buf[:cap(d.buf)], len(d.buf)
		size       = d.size() - at // besides the bytes up to at
		added      = len(g.Prefix) + len(g.Tail)
		keys, vals = 0, 0
	)
	for ; n < len(g.Rows); n++ {
		key, value, end := g.Rows[n].Key, g.Rows[n].Value, g.End(n)
		if len(key) > maxPlain || len(value) > maxPlain {
			break
		}
		row := added + len(key) + len(value) + len(end)
		if !hasRoom(size+at, row) || at+maxLengths+row+base.TrailerLen > len(buf) {
			break
		}
		if next = key; added > 0 {
			if n < from+2 { // later ones are built where the one before the last was
				room = append(room[:0], g.Prefix...)
			}
			next = append(append(room[:len(g.Prefix)], key...), g.Tail...)
		}
		shared := sharedWith(g, n, from, last, next)
		if !w.after(last, next, shared) {
			break // as add will say
		}
		w.filter.add(next, shared)
		keys, vals = keys+len(next), vals+len(value)+len(end)
		if d.left == 0 {
			d.restarts = append(d.restarts, uint32(at-d.start))
			d.left, shared = d.interval, 0
			size += 4
		}
		d.left--
		at += putRow(buf[at:], shared, next, w.trailer, value, end)
		if added > 0 {
			room = last
		}
		last = next
	}
	if added > 0 {
		w.last, w.next = last, room
	} else if n > from {
		w.last = append(w.last[:0], last...)
	}
	rows := uint64(n - from)
	w.entries += int64(rows)
	w.keyBytes += uint64(keys) + rows*base.TrailerLen
	w.valueBytes += uint64(vals)
	d.buf = d.buf[:at]
	return n - from
}
