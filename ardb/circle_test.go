package ardb

import (
	"math"
	"testing"
)

// TestWrapping: the integers that LevelDB's order takes a difference of, and the bounds around them.
func TestWrapping(t *testing.T) {
	w := LevelDBComparer().Wrapping
	ns := AppendText(nil, []byte("0"))
	key := func(user string, k Kind, elems ...Data) []byte { return AppendKey(nil, ns, []byte(user), k, elems...) }
	for _, n := range []int64{0, -7, math.MaxInt64, math.MinInt64} {
		for _, k := range []Kind{KindField, KindMember} {
			raw := key("h", k, IntData(n))
			if got, ok := w.Number(raw); got != n || !ok {
				t.Errorf("%x: %d %v", raw, got, ok)
			}
			lo, hi := w.Bounds(raw)
			for _, in := range [][]byte{raw, lo, key("h", k, Data{}), key("h", k, IntData(-n)), key("h", k, FloatData(-math.MaxFloat64))} {
				if compareNamespaced(lo, in) > 0 || compareNamespaced(in, hi) >= 0 {
					t.Errorf("%x is not in [%x, %x)", in, lo, hi)
				}
			}
			for _, before := range [][]byte{key("h", KindMeta), key("g", k, TextData([]byte("z"))), key("h", k-1, IntData(1))} {
				if compareNamespaced(before, lo) >= 0 {
					t.Errorf("%x is not before %x", before, lo)
				}
			}
			for _, after := range [][]byte{key("h", k, TextData(nil)), key("h", k, IntData(1), IntData(1)), key("h", k+1, IntData(1)), key("i", KindMeta)} {
				if compareNamespaced(after, hi) < 0 {
					t.Errorf("%x is before %x", after, hi)
				}
			}
		}
	}
	whole := key("h", KindField, IntData(math.MinInt64))
	others := [][]byte{key("h", KindMeta), key("h", KindField, TextData([]byte("5"))), key("h", KindSort, FloatData(1), TextData(nil)),
		key("h", KindElement, IntData(1<<62)), key("", KindTTL, IntData(1<<62), TextData(ns), TextData(ns))}
	for n := range whole {
		others = append(others, whole[:n])
	}
	for _, raw := range others {
		if n, ok := w.Number(raw); ok {
			t.Errorf("%x has the number %d", raw, n)
		}
	}
}
