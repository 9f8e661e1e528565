package rocks

import "kvferry/store"

// circle is a range of keys that the comparer may order in a circle.
type circle struct {
	lo, hi   []byte
	any      bool // if min and max are set
	min, max int64
}

// addNumber adds a number.
func (c *circle) addNumber(n int64) {
	if !c.any {
		c.any, c.min, c.max = true, n, n
	}
	c.min, c.max = min(c.min, n), max(c.max, n)
}

// wide reports whether a difference of its numbers overflows.
func (c *circle) wide() bool { return c.any && uint64(c.max)-uint64(c.min) >= 1<<63 }

// circles are the ranges of a column family in which the logs have numbers far from zero. Its memory is bounded.
type circles struct {
	wrapping *store.Wrapping
	byLow    map[string]*circle
	bytes    int64
	most     int64 // the limit of bytes
	full     bool  // if the limit left some out
}

// note adds the range of a key of the logs, if its number is far from zero.
func (cs *circles) note(key []byte) {
	n, ok := cs.wrapping.Number(key)
	if !ok || n > -farNumber && n < farNumber || cs.full {
		return
	}
	lo, hi := cs.wrapping.Bounds(key)
	if cs.byLow[string(lo)] != nil {
		return
	}
	if cs.bytes += int64(2*len(lo)+len(hi)) + 128; cs.bytes > cs.most {
		cs.full = true
		return
	}
	cs.byLow[string(lo)] = &circle{lo: lo, hi: hi}
}

// Of two numbers that are 2^63 or more apart, at least one is farNumber or more from zero.
const farNumber = 1 << 62
