package convert

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"kvferry/record"
)

// TestStoredOrder: findings are told in an order that depends on what they say alone, also those of one place.
func TestStoredOrder(t *testing.T) {
	var want []record.Finding
	for _, file := range []string{"a", "b"} {
		for _, off := range []int64{record.NoOffset, 0, 4096} {
			for _, seq := range []uint64{1, 2} {
				for _, kind := range []string{"key-twice", "lost-page"} {
					for i := range 5 {
						want = append(want, record.Finding{Kind: kind, Keyspace: "0", Key: fmt.Appendf(nil, "key %d", i),
							Place: record.Place{File: file, Off: off, Level: -1, Seq: seq}})
					}
				}
			}
		}
	}
	for range 5 {
		mixed := slices.Clone(want)
		rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		var s storeFindings
		for _, f := range mixed {
			s.report(f)
		}
		n := 0
		s.tell(func(f record.Finding) {
			if w := want[n]; identityOf(&f) != identityOf(&w) {
				t.Fatalf("finding %d is %+v, want %+v", n, f, w)
			}
			n++
		})
		if n != len(want) {
			t.Fatalf("%d findings, want %d", n, len(want))
		}
	}
}
