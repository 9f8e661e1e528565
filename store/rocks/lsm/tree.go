package lsm

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"kvferry/store/rocks/base"
)

// contender is a cursor in a game of the loser tree. Its code and same bit are relative to a base key, which is not
// above the cursor's key: the previous winner or, for the loser at a node, the key it lost to.
type contender struct {
	// code orders keys with the same base if their codes differ (offset-value coding): a longer shared prefix means a
	// smaller key; then the following bytes decide.
	//
	//	+---------------------------------+------------------------------------+
	//	| codeOffset - shared bytes (24b) | the next 5 bytes, zero-padded (40b)|
	//	+---------------------------------+------------------------------------+
	//
	// It follows directly from prefix-compressed blocks and saves most key comparisons. In orders other than bytewise
	// it stays 0 until the end.
	code uint64
	// who is the cursor's index, shifted left by one; the low bit is set if the key equals the base.
	who uint64
}

const (
	codeValueBits = 40
	codeOffset    = 1<<24 - 2 // cap of the shared prefix length
	codeEnd       = 1<<64 - 1 // of a cursor at its end; above all others

	sameBit = 1
)

// code computes the code of the current key, which shares off bytes with the base.
func (c *Cursor) code(off int) uint64 {
	if off >= codeOffset {
		return 0
	}
	// A trailer follows the user key in buf, so 8 bytes are readable wherever the key ends.
	v := binary.BigEndian.Uint64(c.buf[off:])
	if n := c.ulen - off; n < 8 {
		v &^= 1<<(64-8*uint(n)) - 1
	}
	return uint64(codeOffset-off)<<codeValueBits | v>>(64-codeValueBits)
}

// loserTree merges cursors in the order of their internal keys.
type loserTree struct {
	cursors  []*Cursor   // newest first: ties of equal internal keys go to the newer
	nodes    []contender // 0 holds the winner, each other node its loser
	bytewise bool
	compare  func(a, b []byte) int
}

// rebuild plays all games from scratch; every cursor is at its first entry or done.
func (t *loserTree) rebuild() {
	t.nodes = make([]contender, len(t.cursors))
	t.nodes[0] = t.build(1)
}

// build plays the games below a node and returns the winner. Leaf i is node len(cursors)+i.
func (t *loserTree) build(node int) contender {
	if i := node - len(t.cursors); i >= 0 {
		x := contender{who: uint64(i) << 1}
		if c := t.cursors[i]; c.Done {
			x.code = codeEnd
		} else if t.bytewise {
			x.code = c.code(0)
		}
		return x
	}
	a, b := t.build(2*node), t.build(2*node+1)
	t.nodes[node] = b
	t.play(&a, &t.nodes[node])
	return a
}

// winner returns the cursor with the smallest entry, and whether its user key equals the previous one.
func (t *loserTree) winner() (c *Cursor, same bool) {
	w := t.nodes[0].who
	return t.cursors[w>>1], w&sameBit != 0
}

// advance moves the winner to its next entry and finds the new winner. False is the end, or an error of the moved
// cursor.
func (t *loserTree) advance() (bool, error) {
	w := t.nodes[0]
	i := w.who >> 1
	c := t.cursors[i]
	w.who = i << 1
	if !c.Next() {
		if c.Err != nil {
			return false, c.Err
		}
		w.code = codeEnd
	} else {
		if c.same {
			w.who |= sameBit
		}
		if t.bytewise {
			w.code = c.code(c.lcp)
		}
	}
	for node := (int(i) + len(t.nodes)) / 2; node > 0; node /= 2 {
		l := &t.nodes[node]
		if (w.code^l.code)>>codeValueBits == 0 {
			t.play(&w, l)
		} else if l.code < w.code { // usual case: the shared prefixes differ in length
			*l, w = w, *l
		}
	}
	t.nodes[0] = w
	return w.code != codeEnd, nil
}

// play plays a game between contenders with the same base: it leaves the winner in w and the loser, recoded relative to
// it, in l.
func (t *loserTree) play(w, l *contender) {
	if w.code == codeEnd || l.code == codeEnd || !t.bytewise {
		t.playOrdered(w, l)
		return
	}
	x := w.code ^ l.code
	if x == 0 {
		t.playTie(w, l)
		return
	}
	if l.code < w.code {
		*w, *l = *l, *w
	}
	if x>>codeValueBits == 0 {
		// The same offset: the loser shares with the winner the bytes up to the first difference, but not the zero
		// padding in the code of a shorter winner.
		if k := (bits.LeadingZeros64(x) - (64 - codeValueBits)) / 8; k > 0 {
			off := codeOffset - int(l.code>>codeValueBits) + k
			l.code = t.cursors[l.who>>1].code(min(off, t.cursors[w.who>>1].ulen))
		}
	}
	l.who &^= sameBit
}

// playTie plays a game between equal codes: the keys decide.
func (t *loserTree) playTie(w, l *contender) {
	a, b := t.cursors[w.who>>1], t.cursors[l.who>>1]
	ka, kb := a.buf[:a.ulen], b.buf[:b.ulen]
	off := min(codeOffset-int(w.code>>codeValueBits), len(ka), len(kb))
	lcp := base.CommonPrefix(ka, kb, off)
	t.endGame(w, l, bytes.Compare(ka[lcp:], kb[lcp:]))
	l.code = t.cursors[l.who>>1].code(lcp)
}

// playOrdered plays a game in any order. Keys equal to the base come before others.
func (t *loserTree) playOrdered(w, l *contender) {
	switch {
	case w.code == codeEnd || l.code == codeEnd:
		if l.code < w.code {
			*w, *l = *l, *w
		}
	case w.who&l.who&sameBit != 0:
		t.endGame(w, l, 0)
	case w.who&sameBit != 0:
		t.endGame(w, l, -1)
	case l.who&sameBit != 0:
		t.endGame(w, l, 1)
	default:
		t.endGame(w, l, t.compare(t.cursors[w.who>>1].User(), t.cursors[l.who>>1].User()))
	}
}

// endGame ends a game whose user keys compare as o; if they are equal, the newest entry wins.
func (t *loserTree) endGame(w, l *contender, o int) {
	if o == 0 {
		a, b := t.cursors[w.who>>1], t.cursors[l.who>>1]
		if a.Tr < b.Tr || a.Tr == b.Tr && l.who < w.who {
			*w, *l = *l, *w
		}
		l.who |= sameBit
		return
	}
	if o > 0 {
		*w, *l = *l, *w
	}
	l.who &^= sameBit
}
