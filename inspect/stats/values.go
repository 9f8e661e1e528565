package stats

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/zeebo/xxh3"
)

const (
	// leastValue is the size from which values of strings are compared.
	leastValue = 4 << 10
	// maxValues is the number of largest values that are compared.
	maxValues = 1 << 10
)

// valueID identifies a value.
type valueID struct {
	size   int
	hi, lo uint64 // hash
}

// twin is a value with the number of strings that have it, and the first two of them by database and key.
type twin struct {
	id    valueID
	count int64
	keys  []BigKey
}

// values counts the largest different values, exactly: once maxValues are larger than a value, it is not counted.
type values struct {
	by    map[valueID]*twin
	least int // smaller values are not counted
}

// add counts a value. Keys above longestKey are left out.
func (v *values) add(db string, key, value []byte) {
	if len(value) < max(v.least, leastValue) || len(key) > longestKey {
		return
	}
	h := xxh3.Hash128(value)
	k := BigKey{DB: db, Key: key, Bytes: int64(len(value))}
	v.count(&twin{valueID{len(value), h.Hi, h.Lo}, 1, []BigKey{k}})
}

// count adds a twin, of which it copies the keys.
func (v *values) count(t *twin) {
	if v.by == nil {
		v.by = make(map[valueID]*twin)
	}
	to := v.by[t.id]
	if to == nil {
		to = &twin{id: t.id}
		v.by[t.id] = to
	}
	to.count += t.count
	for _, k := range t.keys {
		i, _ := slices.BinarySearchFunc(to.keys, k, func(a, b BigKey) int {
			return cmp.Or(cmp.Compare(a.DB, b.DB), bytes.Compare(a.Key, b.Key))
		})
		if i < 2 {
			k.Key = bytes.Clone(k.Key)
			to.keys = slices.Insert(to.keys, i, k)
			to.keys = to.keys[:min(len(to.keys), 2)]
		}
	}
	if len(v.by) > 2*maxValues {
		v.cut()
	}
}

// cut keeps the largest values.
func (v *values) cut() {
	if len(v.by) <= maxValues {
		return
	}
	all := v.list()
	for _, t := range all[maxValues:] {
		delete(v.by, t.id)
	}
	v.least = all[maxValues-1].id.size
}

// list returns the values, largest first.
func (v *values) list() (out []*twin) {
	for _, t := range v.by {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *twin) int {
		return cmp.Or(cmp.Compare(b.id.size, a.id.size), cmp.Compare(a.id.hi, b.id.hi), cmp.Compare(a.id.lo, b.id.lo))
	})
	return out
}

func (v *values) merge(w *values) {
	for _, t := range w.by {
		v.count(t)
	}
}

// twins returns values of several strings, by the bytes of their copies.
func (v *values) twins() []*twin {
	v.cut()
	out := slices.DeleteFunc(v.list(), func(t *twin) bool { return t.count < 2 })
	slices.SortStableFunc(out, func(a, b *twin) int { return cmp.Compare(b.spare(), a.spare()) })
	return out
}

// spare is the number of bytes beyond the first of the values.
func (t *twin) spare() int64 {
	return min(t.count-1, math.MaxInt64/int64(t.id.size)) * int64(t.id.size)
}
