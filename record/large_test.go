package record

import (
	"math/rand/v2"
	"testing"
)

// TestLargeElements checks that the hash of an element is the same whether its value is copied or hashed in place.
func TestLargeElements(t *testing.T) {
	big := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{1}).Read(big)
	for _, typ := range AllTypes.Types() {
		for _, kind := range []Kind{Entry, Group, Consumer, Pending} {
			for _, n := range []int{maxWaiting, maxHeld, maxHeld + 1, len(big)} {
				for _, expire := range []int64{0, 5} {
					e := Element{Name: []byte("name"), Value: big[:n], Score: 1.5, Kind: kind, ExpireMS: expire}
					h := Hasher{typ: typ, count: 3}
					if got, want := h.hashLarge(&e), HashBytes(AppendElement(nil, typ, 3, &e)); got != want {
						t.Errorf("%s, kind %d, %d bytes, expiry %d: another hash", typ, kind, n, expire)
					}
					if e.ExpireMS == 0 && kind == Entry && typ != Set && typ != ZSet && cap(h.large) > 2*maxHeld {
						t.Errorf("%s of %d bytes: %d are held", typ, n, cap(h.large))
					}
				}
			}
		}
	}
}
