package ssdb

import (
	"encoding/binary"
	"fmt"

	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

func queues() *versioned.Codec {
	return &versioned.Codec{
		Start: startQueue, Bound: bound, Count: checkQueue, Loosen: unbound, Taken: large,
		Element: func(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
			e.Name, e.Value, e.Score = nil, value, 0
			return 0, len(rest) == int64Len && isSeq(binary.BigEndian.Uint64(rest)) && binary.BigEndian.Uint64(rest) >= MinItem
		},
		Position: func(rest []byte) uint64 { return binary.BigEndian.Uint64(rest) },
		Encoding: versioned.Encoding{First: FirstItem,
			Writer:         func(t *versioned.TypeWriter) versioned.ElementWriter { return &queueWriter{t: t} },
			AppendRow:      func(dst, key []byte, _ int64) []byte { return appendPrefix(dst, kindItem, key) },
			AppendPosition: binary.BigEndian.AppendUint64},
	}
}

// startQueue resets the bounds of a queue: their rows come before the items.
func startQueue(m *versioned.Meta) { m.Left, m.Right, m.Boundless = 0, 0, true }

// bound reads the row of the front or the back. Unless both exist the server serves no item.
func bound(m *versioned.Meta, rest, value []byte) bool {
	n, err := DecodeSize(value)
	if err != nil || len(rest) != int64Len {
		return false
	}
	switch binary.BigEndian.Uint64(rest) {
	case seqFront:
		m.Left = uint64(n) - 1
	case seqBack:
		m.Right, m.Boundless = uint64(n)+1, m.Left == 0
	default:
		return false
	}
	return true
}

// unbound makes a codec accept popped items, which are outside the last bounds.
func unbound(c *versioned.Codec) {
	c.Start = func(m *versioned.Meta) { m.Left, m.Right, m.Boundless = MinItem-1, 1<<63, false }
	c.Bound = func(*versioned.Meta, []byte, []byte) bool { return true }
}

// checkQueue compares the size with the bounds; missing items were reported. Items outside of bounds that the size
// confirms are leftovers: QSET makes them on replicas.
func checkQueue(r *versioned.Reader, rows int64) {
	m, outside := r.Meta(), r.Outside()
	switch {
	case outside == 0:
	case m.Boundless:
		r.Remark(FindListBounds, record.Error, fmt.Sprintf("the row of the front or back is missing, so the server does not serve any of the %s; its command qfix rebuilds the row",
			record.Count(outside, "item")))
	default:
		severity := record.Error
		if m.Count == rows {
			severity = record.Warning
		}
		r.Remark(versioned.FindListOutside, severity, fmt.Sprintf("the front is %d and the back %d; the server does not show %s outside of them, as QSET leaves on replicas",
			m.Left+1, m.Right-1, record.Count(outside, "item")))
	}
	if !m.Boundless {
		checkSize(r, rows)
	}
}

// queueWriter writes the bounds before the items, which it buffers to count them.
type queueWriter struct {
	t *versioned.TypeWriter
	n uint64
}

func (w *queueWriter) Begin() { w.n = 0 }

// Write buffers items.
func (w *queueWriter) Write(elems []record.Element) error {
	var seq [int64Len]byte
	for i := range elems {
		binary.BigEndian.PutUint64(seq[:], FirstItem+w.n)
		room, err := w.t.SortRoom(0, seq[:], len(elems[i].Value))
		if err != nil {
			return err
		}
		copy(room, elems[i].Value)
		w.n++
	}
	return nil
}

// End writes the rows.
func (w *queueWriter) End() error {
	for i, bound := range []uint64{FirstItem, FirstItem + w.n - 1} {
		err := w.t.Put(binary.BigEndian.AppendUint64(nil, seqFront+uint64(i)), AppendSize(nil, int64(bound)))
		if err != nil {
			return err
		}
	}
	return w.t.Sorted(func(_ uint64, seq, value []byte) error { return w.t.Put(seq, value) })
}
