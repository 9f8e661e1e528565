package stats

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"kvferry/record"
)

// TestTopIsExact checks that the top list is exact and independent of how keys are distributed over parts.
func TestTopIsExact(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	measure := func(k *BigKey) int64 { return k.Bytes }
	var all []BigKey
	whole, parts := top{n: 10, measure: measure}, [3]top{}
	for i := range parts {
		parts[i] = top{n: 10, measure: measure}
	}
	buf := make([]byte, 0, 16)
	for i := range 2000 {
		k := BigKey{Type: record.Hash, Bytes: r.Int63n(100), Key: fmt.Appendf(buf[:0], "k%d", i)} // a view
		if whole.ranks(k.Bytes, k.Key) {
			whole.add(&k)
		}
		parts[i%3].add(&k)
		k.Key = slices.Clone(k.Key)
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b BigKey) int { return whole.compare(&a, &b) })
	parts[0].merge(&parts[1])
	parts[0].merge(&parts[2])
	for i, k := range all[:10] {
		if a, b := whole.list()[i], parts[0].list()[i]; string(a.Key) != string(k.Key) || string(b.Key) != string(k.Key) {
			t.Errorf("place %d: %s and %s, want %s", i, a.Key, b.Key, k.Key)
		}
	}
	none := top{measure: measure}
	none.add(&all[0])
	if len(none.list()) != 0 || none.ranks(1<<40, nil) {
		t.Error("a top of none keeps keys")
	}
}
