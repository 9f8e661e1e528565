package codec

import (
	"math"
	"testing"

	"kvferry/store"
)

// TestWrapping checks the integers that the order subtracts, and the bounds around them.
func TestWrapping(t *testing.T) {
	t.Run("LevelDB", func(t *testing.T) { testWrapping(t, LevelDBComparer(), AppendText(nil, []byte("0"))) })
	t.Run("RocksDB", func(t *testing.T) { testWrapping(t, Comparer(), nil) })
}

func testWrapping(t *testing.T, c store.Comparer, ns []byte) {
	w, compare := c.Wrapping, c.Compare
	key := func(user string, k Kind, elems ...Data) []byte { return AppendKey(nil, ns, []byte(user), k, elems...) }
	for _, n := range []int64{0, -7, math.MaxInt64, math.MinInt64} {
		for _, k := range []Kind{KindField, KindMember} {
			raw := key("h", k, IntData(n))
			if got, ok := w.Number(raw); got != n || !ok {
				t.Errorf("%x: %d %v", raw, got, ok)
			}
			lo, hi := w.Bounds(raw)
			for _, in := range [][]byte{raw, lo, key("h", k, Data{}), key("h", k, IntData(-n)),
				key("h", k, FloatData(-math.MaxFloat64))} {
				if compare(lo, in) > 0 || compare(in, hi) >= 0 {
					t.Errorf("%x is not in [%x, %x)", in, lo, hi)
				}
			}
			for _, before := range [][]byte{key("h", KindMeta), key("g", k, TextData([]byte("z"))), key("h", k-1, IntData(1))} {
				if compare(before, lo) >= 0 {
					t.Errorf("%x is not before %x", before, lo)
				}
			}
			for _, after := range [][]byte{key("h", k, TextData(nil)), key("h", k, IntData(1), IntData(1)),
				key("h", k+1, IntData(1)), key("i", KindMeta)} {
				if compare(after, hi) < 0 {
					t.Errorf("%x is before %x", after, hi)
				}
			}
		}
	}
	whole := key("h", KindField, IntData(math.MinInt64))
	others := [][]byte{key("h", KindMeta), key("h", KindField, TextData([]byte("5"))),
		key("h", KindSort, FloatData(1), TextData(nil)),
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
