package store

import (
	"bytes"
	"slices"
)

// Group holds rows in ascending order with a common beginning and end. Row i has the key Prefix + Rows[i].Key + Tail
// and the value Rows[i].Value + End(i).
type Group struct {
	Prefix, Tail, Suffix []byte
	Rows                 []Row
	// Ends replace Suffix if the values do not end alike: EndLen bytes for each row, side by side.
	Ends   []byte
	EndLen int // 0: all values end with Suffix
}

// End returns the end of the value of row i, as a view.
func (g *Group) End(i int) []byte {
	if g.EndLen == 0 {
		return g.Suffix
	}
	return g.Ends[i*g.EndLen:][:g.EndLen]
}

// Skip leaves out the first n rows.
func (g *Group) Skip(n int) { g.Rows, g.Ends = g.Rows[n:], g.Ends[n*g.EndLen:] }

// Key returns the key of row i, as a copy.
func (g *Group) Key(i int) []byte { return slices.Concat(g.Prefix, g.Rows[i].Key, g.Tail) }

// Each calls f for each row; key and value are valid until f returns.
func (g *Group) Each(f func(key, value []byte) error) error {
	key, value := append([]byte(nil), g.Prefix...), []byte(nil)
	for i := range g.Rows {
		key = append(append(key[:len(g.Prefix)], g.Rows[i].Key...), g.Tail...)
		v := g.Rows[i].Value
		if end := g.End(i); len(end) > 0 {
			value = append(append(value[:0], v...), end...)
			v = value
		}
		if err := f(key, v); err != nil {
			return err
		}
	}
	return nil
}

// Successor returns the smallest byte string greater than all strings that start with b; false if no such
// string exists, because b is empty or all 0xFF.
func Successor(b []byte) ([]byte, bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			out := bytes.Clone(b[:i+1])
			out[i]++
			return out, true
		}
	}
	return nil, false
}

// KeyRange returns the range of a single key: it alone is a k with lo <= k < hi. The ends share memory.
func KeyRange(key []byte) (lo, hi []byte) {
	hi = append(append(make([]byte, 0, len(key)+1), key...), 0)
	return hi[:len(key):len(key)], hi
}

// OnlyKey returns the only byte string k with lo <= k < hi; false if there can be several, where nil is open.
func OnlyKey(lo, hi []byte) ([]byte, bool) {
	n := len(hi) - 1
	return lo, lo != nil && n == len(lo) && hi[n] == 0 && bytes.Equal(hi[:n], lo)
}
