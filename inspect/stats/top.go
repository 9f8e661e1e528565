package stats

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"

	"kvferry/record"
)

// BigKey is one of the largest records.
type BigKey struct {
	DB       string
	Type     record.Type
	Key      []byte
	Bytes    int64 // logical
	Redis    int64 // estimated memory in Redis
	Elements int64
	ExpireMS int64
}

// top keeps the n largest keys by one measure, exactly.
type top struct {
	n       int
	measure func(*BigKey) int64
	keys    []BigKey // a heap, the smallest first
	least   int64    // the measure of the smallest, if all n are there
}

// ranks reports whether a key may be one of the largest, whose measure is at most this, and that does not come before
// first. All keys are of the same database.
func (t *top) ranks(measure int64, first []byte) bool {
	switch {
	case t.n <= 0:
		return false
	case len(t.keys) < t.n || measure > t.least:
		return true
	}
	return measure == t.least && bytes.Compare(first, t.keys[0].Key) <= 0
}

// add adds a key. It copies a key that it keeps.
func (t *top) add(k *BigKey) {
	if t.n <= 0 || len(t.keys) == t.n && t.compare(k, &t.keys[0]) >= 0 {
		return
	}
	if len(t.keys) == t.n {
		heap.Pop(t)
	}
	kept := *k
	kept.Key = bytes.Clone(k.Key)
	heap.Push(t, kept)
	t.least = t.measure(&t.keys[0])
}

// compare orders larger keys first, equally large ones in the order of the dump.
func (t *top) compare(a, b *BigKey) int {
	if c := cmp.Compare(t.measure(b), t.measure(a)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.DB, b.DB); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return cmp.Compare(a.Type, b.Type)
}

// list returns the keys, largest first.
func (t *top) list() []BigKey {
	out := slices.Clone(t.keys)
	slices.SortFunc(out, func(a, b BigKey) int { return t.compare(&a, &b) })
	return out
}

func (t *top) merge(u *top) {
	for i := range u.keys {
		t.add(&u.keys[i])
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t *top) Len() int           { return len(t.keys) }
func (t *top) Less(i, j int) bool { return t.compare(&t.keys[i], &t.keys[j]) > 0 }
func (t *top) Swap(i, j int)      { t.keys[i], t.keys[j] = t.keys[j], t.keys[i] }
func (t *top) Push(x any)         { t.keys = append(t.keys, x.(BigKey)) }
func (t *top) Pop() any {
	last := len(t.keys) - 1
	k := t.keys[last]
	t.keys = t.keys[:last]
	return k
}
