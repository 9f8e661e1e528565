package rocksfile

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// ovc is what a loser tree keeps about a cursor's current key, relative to a base key that is not
// above it: the key that won last, or, for the loser at a node, the key it lost to.
type ovc struct {
	// code orders keys that have the same base, if their codes differ (offset-value coding): the
	// longer the prefix shared with the base the smaller the key, then the bytes after it decide.
	//
	//	+---------------------------------+------------------------------------+
	//	| codeOffset - shared bytes (24b) | the next 5 bytes, zero-padded (40b)|
	//	+---------------------------------+------------------------------------+
	//
	// It comes for free from prefix-compressed blocks, and spares most key comparisons.
	code uint64
	// same says that the key equals the base.
	same bool
}

const (
	codeValueBits = 40
	codeOffset    = 1<<24 - 2 // longer shared prefixes count as this long
	codeEnd       = 1<<64 - 1 // of a cursor at its end: above all others
)

// setCode computes the code of the current key, which shares off bytes with the base.
func (c *cursor) setCode(off int) {
	if off >= codeOffset {
		c.tree.code = 0
		return
	}
	// A trailer follows the user key in buf: 8 bytes can be read wherever the key ends.
	v := binary.BigEndian.Uint64(c.buf[off:])
	if n := c.ulen - off; n < 8 {
		v &^= 1<<(64-8*uint(n)) - 1
	}
	c.tree.code = uint64(codeOffset-off)<<codeValueBits | v>>(64-codeValueBits)
}

// loserTree merges cursors in the order of their internal keys.
type loserTree struct {
	cursors  []*cursor // newest first: ties of equal internal keys go to the newer
	nodes    []int     // 0 holds the winner, others the loser of the game at that node
	bytewise bool
	compare  func(a, b []byte) int
}

// rebuild plays all games anew; every cursor stands at its first entry or is done.
func (t *loserTree) rebuild() {
	n := len(t.cursors)
	if len(t.nodes) != n {
		t.nodes = make([]int, n)
	}
	for i, c := range t.cursors {
		c.tree = ovc{code: codeEnd}
		if !c.done && t.bytewise {
			c.setCode(0)
		} else if !c.done {
			c.tree.code = 0
		}
		t.nodes[i] = -1
	}
	t.nodes[0] = t.play(1)
}

// play plays the games below a node and returns the winner. Leaf i is node n+i.
func (t *loserTree) play(node int) int {
	if n := len(t.cursors); node >= n {
		return node - n
	}
	a, b := t.play(2*node), t.play(2*node+1)
	if t.beats(b, a) {
		a, b = b, a
	}
	t.nodes[node] = b
	return a
}

// winner returns the cursor whose entry comes first; it is done when all are.
func (t *loserTree) winner() *cursor { return t.cursors[t.nodes[0]] }

// advance moves the winner to its next entry and finds the new winner. False is the end of all, or an
// error of the cursor that was moved.
func (t *loserTree) advance() (bool, error) {
	w := t.nodes[0]
	c := t.cursors[w]
	switch {
	case !c.next():
		if c.err != nil {
			return false, c.err
		}
		c.tree = ovc{code: codeEnd}
	case t.bytewise:
		c.tree.same = c.same
		c.setCode(c.lcp)
	default:
		c.tree = ovc{same: c.same}
	}
	for node := (w + len(t.cursors)) / 2; node > 0; node /= 2 {
		l := t.nodes[node]
		// The usual case, played here: the codes differ in the length of the shared prefix.
		if a, b := t.cursors[w].tree.code, t.cursors[l].tree.code; (a^b)>>codeValueBits != 0 {
			if b < a {
				t.nodes[node], w = w, l
			}
		} else if t.beats(l, w) {
			t.nodes[node], w = w, l
		}
	}
	t.nodes[0] = w
	return !t.cursors[w].done, nil
}

// beats reports whether cursor i comes before cursor j, both relative to the same base, and makes
// the loser relative to the winner.
func (t *loserTree) beats(i, j int) bool {
	a, b := t.cursors[i], t.cursors[j]
	if a.tree.code == codeEnd || b.tree.code == codeEnd {
		return a.tree.code < b.tree.code
	}
	if !t.bytewise {
		return t.beatsOrdered(a, b, i < j)
	}
	x := a.tree.code ^ b.tree.code
	if x == 0 {
		return t.beatsTie(a, b, i < j)
	}
	won := a.tree.code < b.tree.code
	loser, winner := b, a
	if !won {
		loser, winner = a, b
	}
	if x>>codeValueBits == 0 {
		// The same offset: the loser shares with the winner the bytes up to the first that differs,
		// but none of the zeros that pad the code of a winner that ends before.
		off := codeOffset - int(loser.tree.code>>codeValueBits)
		if k := (bits.LeadingZeros64(x) - (64 - codeValueBits)) / 8; k > 0 {
			loser.setCode(min(off+k, winner.ulen))
		}
	}
	loser.tree.same = false
	return won
}

// beatsTie plays a game of equal codes: the keys decide.
func (t *loserTree) beatsTie(a, b *cursor, newer bool) bool {
	off := codeOffset - int(a.tree.code>>codeValueBits)
	ka, kb := a.buf[:a.ulen], b.buf[:b.ulen]
	off = min(off, len(ka), len(kb))
	lcp := commonPrefix(ka, kb, off)
	o := bytes.Compare(ka[lcp:], kb[lcp:])
	won := o < 0
	if o == 0 {
		won = a.tr > b.tr || a.tr == b.tr && newer
	}
	loser := b
	if !won {
		loser = a
	}
	loser.setCode(lcp)
	loser.tree.same = o == 0
	return won
}

// beatsOrdered plays a game by any order. Keys that equal the base are before those that do not.
func (t *loserTree) beatsOrdered(a, b *cursor, newer bool) bool {
	o := 0
	switch {
	case a.tree.same && b.tree.same:
	case a.tree.same:
		o = -1
	case b.tree.same:
		o = 1
	default:
		o = t.compare(a.user(), b.user())
	}
	won := o < 0
	if o == 0 {
		won = a.tr > b.tr || a.tr == b.tr && newer
	}
	if won {
		b.tree.same = o == 0
	} else {
		a.tree.same = o == 0
	}
	return won
}
