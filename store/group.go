package store

import "slices"

// Group holds rows in ascending order with a common beginning and end. Row i has the key Prefix + Rows[i].Key + Tail
// and the value Rows[i].Value + Suffix.
type Group struct {
	Prefix, Tail, Suffix []byte
	Rows                 []Row
}

// Key returns the key of row i, as a copy.
func (g *Group) Key(i int) []byte { return slices.Concat(g.Prefix, g.Rows[i].Key, g.Tail) }

// Each calls f for each row; key and value are valid until f returns.
func (g *Group) Each(f func(key, value []byte) error) error {
	key, value := append([]byte(nil), g.Prefix...), []byte(nil)
	for i := range g.Rows {
		key = append(append(key[:len(g.Prefix)], g.Rows[i].Key...), g.Tail...)
		v := g.Rows[i].Value
		if len(g.Suffix) > 0 {
			value = append(append(value[:0], v...), g.Suffix...)
			v = value
		}
		if err := f(key, v); err != nil {
			return err
		}
	}
	return nil
}
