package stats

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
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
	// ascending is true if keys are added in order, so that the later of two equally large ones
	// never wins.
	ascending bool
}

// floor is the largest measure that certainly does not rank among the largest; -1 if any may.
func (t *top) floor() int64 {
	if t.n <= 0 {
		return math.MaxInt64
	}
	if len(t.keys) < t.n {
		return -1
	}
	least := t.measure(&t.keys[0])
	if !t.ascending {
		least--
	}
	return least
}

// add adds a key. It copies a key that it keeps.
func (t *top) add(k *BigKey) {
	if t.n <= 0 || t.measure(k) <= t.floor() || len(t.keys) == t.n && t.compare(k, &t.keys[0]) >= 0 {
		return
	}
	if len(t.keys) == t.n {
		heap.Pop(t)
	}
	kept := *k
	kept.Key = bytes.Clone(k.Key)
	heap.Push(t, kept)
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
