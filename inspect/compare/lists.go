package compare

import (
	"bytes"
	"hash/maphash"
	"slices"

	"kvferry/record"
)

// Lists are compared in windows: from the first items that differ, each side reads up to windowItems items, or
// windowBytes, ahead of the comparison, and the windows are aligned with up to maxEdits missing and extra items. What
// needs more than that is compared by position, and so are items larger than largeItem, which are not copied: memory and
// time are bounded for lists of any length.
const (
	windowItems = 4096
	windowBytes = 4 << 20
	maxEdits    = 1000
	largeItem   = windowBytes / 8
)

// byItem compares lists: items that are missing or extra do not make those behind them differ.
func (d *differ) byItem(a, b *side, x *Difference) error {
	wa, wb := &d.windows[0], &d.windows[1]
	wa.begin(a)
	wb.begin(b)
	for {
		ia, err := wa.peek()
		if err != nil {
			return err
		}
		ib, err := wb.peek()
		switch {
		case err != nil || ia == nil && ib == nil:
			return err
		case ia == nil || ib == nil:
			err = d.items(x, count(ia), count(ib))
		case ia.equal(ib):
			wa.takeElement()
			wb.takeElement()
		case len(ia.value) > largeItem || len(ib.value) > largeItem:
			err = d.items(x, 1, 1)
		default:
			err = d.realign(x)
		}
		if err != nil {
			return err
		}
	}
}

func count(i *item) int {
	if i == nil {
		return 0
	}
	return 1
}

// realign fills the windows, aligns them and reports the items that differ.
func (d *differ) realign(x *Difference) error {
	wa, wb := &d.windows[0], &d.windows[1]
	if err := wa.fill(); err != nil {
		return err
	}
	if err := wb.fill(); err != nil {
		return err
	}
	edits := d.aligner.align(wa.ahead, wb.ahead, wa.ended && wb.ended)
	if len(edits) == 0 {
		n := min(len(wa.ahead), len(wb.ahead))
		return d.items(x, n, n)
	}
	for _, e := range edits {
		if err := d.items(x, e.a, e.b); err != nil {
			return err
		}
		for range e.same {
			wa.takeElement()
			wb.takeElement()
		}
	}
	return nil
}

// items reports that the next na items of A were replaced by the next nb items of B. Items in the same place are one
// difference, if any.
func (d *differ) items(x *Difference, na, nb int) error {
	wa, wb := &d.windows[0], &d.windows[1]
	for ; na > 0 || nb > 0; na, nb = na-1, nb-1 {
		var ia, ib *item
		var err error
		var ea, eb *record.Element
		x.Index, x.IndexB = wa.index, wb.index
		if na > 0 {
			if ia, err = wa.peek(); err != nil {
				return err
			}
			ea = &record.Element{Value: ia.value}
		}
		if nb > 0 {
			if ib, err = wb.peek(); err != nil {
				return err
			}
			eb = &record.Element{Value: ib.value}
		}
		if ia == nil || ib == nil || !ia.equal(ib) {
			if err := d.element(x, ea, eb); err != nil {
				return err
			}
		}
		if ia != nil {
			wa.takeElement()
		}
		if ib != nil {
			wb.takeElement()
		}
	}
	return nil
}

// window reads the items of one side of a list, and copies them when it reads ahead.
type window struct {
	s     *side
	ahead []item // read, but not yet compared
	index int64  // of the next item in the list
	head  item   // the next item of the side, a view
	ended bool   // the side has no items after ahead
}

// item is an item of a list. Only the items of a window have a sum.
type item struct {
	value []byte
	sum   uint64
}

func (i *item) equal(other *item) bool { return bytes.Equal(i.value, other.value) }

func (w *window) begin(s *side) { *w = window{s: s} }

// peek returns the next item, or nil after the last. It is valid until the next take or fill.
func (w *window) peek() (*item, error) {
	if len(w.ahead) > 0 {
		return &w.ahead[0], nil
	}
	e, err := w.s.peek()
	if e == nil || err != nil {
		return nil, err
	}
	w.head.value = e.Value
	return &w.head, nil
}

func (w *window) takeElement() {
	w.index++
	if len(w.ahead) > 0 {
		w.ahead = w.ahead[1:]
		return
	}
	w.s.nextRecord()
}

// seed makes the sums of a process; they are compared only with each other.
var seed = maphash.MakeSeed()

// fill reads ahead up to a large item or the bounds of a window.
func (w *window) fill() error {
	w.ahead = slices.Clone(w.ahead)
	size := 0
	for _, i := range w.ahead {
		size += len(i.value)
	}
	for len(w.ahead) < windowItems && size < windowBytes {
		e, err := w.s.peek()
		if err != nil {
			return err
		}
		if e == nil {
			w.ended = true
			return nil
		}
		if len(e.Value) > largeItem {
			return nil
		}
		w.ahead = append(w.ahead, item{bytes.Clone(e.Value), maphash.Bytes(seed, e.Value)})
		size += len(e.Value)
		w.s.nextRecord()
	}
	return nil
}

// edit replaces a items of A by b items of B; the same items follow on both sides.
type edit struct{ a, b, same int }

// aligner finds the shortest edit script of two windows, as Eugene W. Myers describes it ("An O(ND) Difference
// Algorithm and Its Variations", 1986).
type aligner struct {
	// reached holds, for d edits and each diagonal k = x - y of -d, -d+2, …, d, the furthest x; row d starts at
	// d(d+1)/2.
	reached []int32
	edits   []edit
}

func (al *aligner) at(d, k int) int { return int(al.reached[d*(d+1)/2+(k+d)/2]) }

// from returns the point on diagonal k from which edit d starts: the diagonal and x before it, and x after it.
func (al *aligner) from(d, k int) (before, x0, x1 int) {
	if k == -d || k != d && al.at(d-1, k-1) < al.at(d-1, k+1) {
		x := al.at(d-1, k+1) // an item of B
		return k + 1, x, x
	}
	x := al.at(d-1, k-1) // an item of A
	return k - 1, x, x + 1
}

// align returns edits that lead through both windows if these are whole, the ends of the lists; otherwise up to the
// last common items before the end of either window. It returns none if the windows have nothing in common within
// maxEdits.
func (al *aligner) align(a, b []item, whole bool) []edit {
	al.reached = al.reached[:0]
	for d := 0; d <= maxEdits; d++ {
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				_, _, x = al.from(d, k)
			}
			for x < len(a) && x-k < len(b) && a[x].sum == b[x-k].sum && a[x].equal(&b[x-k]) {
				x++
			}
			al.reached = append(al.reached, int32(x))
			endA, endB := x >= len(a), x-k >= len(b)
			if whole && endA && endB || !whole && (endA || endB) {
				return al.script(d, k, whole)
			}
		}
	}
	return nil
}

// script returns the edits that lead to the end of row d on diagonal k.
func (al *aligner) script(d, k int, whole bool) []edit {
	al.edits = al.edits[:0]
	trailing := !whole // edits at the end of a window wait for the items behind it
	for ; d > 0; d-- {
		before, x0, x1 := al.from(d, k)
		same := al.at(d, k) - x1
		if trailing = trailing && same == 0; !trailing {
			al.prepend(edit{x1 - x0, 1 - (x1 - x0), same})
		}
		k = before
	}
	if same := al.at(0, 0); same > 0 {
		al.prepend(edit{same: same})
	}
	slices.Reverse(al.edits)
	return al.edits
}

// prepend adds an edit in front of the others, which are in reverse order. Edits without common items between them
// become one.
func (al *aligner) prepend(e edit) {
	if n := len(al.edits); n > 0 && e.same == 0 {
		al.edits[n-1].a += e.a
		al.edits[n-1].b += e.b
		return
	}
	al.edits = append(al.edits, e)
}
