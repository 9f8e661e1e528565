package blackwidow

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"kvferry/fixtures"
	"kvferry/store"
)

// checkAscending compares each pair of keys.
func checkAscending(t *testing.T, c store.Comparer, keys []string) {
	t.Helper()
	for i, a := range keys {
		for j, b := range keys {
			got, want := c.Compare(raw(t, a), raw(t, b)), 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if sign(got) != want {
				t.Errorf("%s: compare(%s, %s) = %d, want %d", c.Name, a, b, got, want)
			}
		}
	}
}

func sign(n int) int { return min(max(n, -1), 1) }

func TestListOrder(t *testing.T) {
	checkAscending(t, ListsDataKeyComparator, []string{
		"",                  // malformed ones, as bytes
		"00",                //
		"01000000",          // klen beyond the end
		"ffffffff 'a'",      //
		"00000000",          // the empty key, without a version
		"00000000 00",       // with half of one
		"00000000 ffffffff", // signed: -1
		"00000000 01000000",
		"00000000 01000000 01",                // half an index
		"00000000 01000000 00000000 00000000", // index 0
		"00000000 01000000 00010000 00000000", // 256
		"00000000 01000000 ffffffff ffffff7f", // unsigned: 2^63-1
		"00000000 01000000 00000000 00000080", // 2^63
		"00000000 01000000 00000000 00000080 00",
		"00000000 00010000 00000000 00000000", // version 256, not by bytes
		"02000000 'aa' 01000000 00000000 00000000",
		"03000000 'aaa' 01000000 00000000 00000000",
		"01000000 'b' 01000000 00000000 00000000", // by user key, not by length
	})
}

func TestScoreOrder(t *testing.T) {
	nan := "010000000000f87f"
	checkAscending(t, ZSetsScoreKeyComparator, []string{
		"",
		"00",
		"00000000",
		"00000000 00000000",
		"00000000 00010000 00000000 00000000 'm'", // version 256, by bytes
		"00000000 01000000",
		"00000000 01000000 01",
		"00000000 01000000 00000000 0000f0ff", // -inf
		"00000000 01000000 00000000 0000f0bf", // -1
		"00000000 01000000 00000000 00000080", // -0.0, the empty member
		"00000000 01000000 00000000 00000000 'a'",
		"00000000 01000000 00000000 00000080 'b'", // -0.0 ranks as 0.0
		"00000000 01000000 00000000 00000000 'c'",
		"00000000 01000000 01000000 00000000", // 5e-324
		"00000000 01000000 00000000 00004043", // 2^53
		"00000000 01000000 01000000 00004043", // 2^53 + 2
		"00000000 01000000 00000000 0000f07f", // inf
		"00000000 01000000 " + nan,
		"00000000 01000000 " + nan + " 'm'",
		"00000000 02000000 00000000 00000000",
		"00010000 01000000",         // klen 256: beyond the end
		"01000000 'a'",              //
		"01000000 'a' 01000000",     //
		"ffffffff 'a' 010000000000", //
	})
	zero, negative := "01000000 'z' 01000000 00000000 00000000 'm'", "01000000 'z' 01000000 00000000 00000080 'm'"
	if ZSetsScoreKeyComparator.Compare(raw(t, zero), raw(t, negative)) != 0 {
		t.Error("0.0 and -0.0 are not the same")
	}
}

// randomKey makes similar keys, many of them truncated.
func randomKey(r *fixtures.Rand) []byte {
	user := make([]byte, r.Intn(3))
	for i := range user {
		user[i] = byte(r.Intn(2))
	}
	b := appendPrefix(nil, user, Version(r.Intn(3)-1))
	scores := []float64{math.Inf(-1), -1, math.Copysign(0, -1), 0, 1, math.NaN(), math.Inf(1)}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(fixtures.Pick(r, scores)))
	if r.Chance(50) {
		b = append(b, byte(r.Intn(2)))
	}
	if r.Chance(30) {
		b = b[:r.Intn(len(b)+1)]
	}
	if r.Chance(10) && len(b) > 0 {
		b[r.Intn(len(b))] = byte(r.Intn(256))
	}
	return b
}

// TestOrdersAreTotal: the order is total for any keys: after sorting, each key precedes all later ones.
func TestOrdersAreTotal(t *testing.T) {
	for _, c := range Comparers() {
		r := fixtures.NewRand(1)
		var keys [][]byte
		for range 400 {
			keys = append(keys, randomKey(r))
		}
		slices.SortFunc(keys, c.Compare)
		for i, a := range keys {
			for _, b := range keys[i:] {
				ab, ba := sign(c.Compare(a, b)), sign(c.Compare(b, a))
				if ab > 0 || ab != -ba {
					t.Fatalf("%s: compare(%x, %x) = %d, reversed %d", c.Name, a, b, ab, ba)
				}
				if ab == 0 && !bytes.Equal(a, b) && !zeros(a, b) {
					t.Fatalf("%s: %x and %x are the same", c.Name, a, b)
				}
			}
		}
	}
}

// zeros reports whether two keys differ only in the sign of a zero.
func zeros(a, b []byte) bool {
	x, err := DecodeScoreKey(a)
	y, yerr := DecodeScoreKey(b)
	return err == nil && yerr == nil && x.Score == 0 && y.Score == 0 && bytes.Equal(x.Member, y.Member)
}

func FuzzComparators(f *testing.F) {
	r := fixtures.NewRand(2)
	for range 20 {
		f.Add(randomKey(r), randomKey(r), randomKey(r))
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		for _, cmp := range Comparers() {
			ab, bc, ac := cmp.Compare(a, b), cmp.Compare(b, c), cmp.Compare(a, c)
			if ab <= 0 && bc <= 0 && ac > 0 || ab >= 0 && bc >= 0 && ac < 0 {
				t.Errorf("%s: %x, %x, %x: %d, %d, but %d", cmp.Name, a, b, c, ab, bc, ac)
			}
			if sign(ab) != -sign(cmp.Compare(b, a)) || cmp.Compare(a, a) != 0 {
				t.Errorf("%s: %x, %x: %d, reversed %d", cmp.Name, a, b, ab, cmp.Compare(b, a))
			}
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	key := []byte("user:0000012345")
	lists := [2][]byte{AppendListKey(nil, ListKey{key, 1, 1 << 63}), AppendListKey(nil, ListKey{key, 1, 1<<63 + 1})}
	scores := [2][]byte{AppendScoreKey(nil, ScoreKey{key, 1, 1, []byte("m1")}), AppendScoreKey(nil, ScoreKey{key, 1, 2, []byte("m2")})}
	for name, c := range map[string]struct {
		compare func(a, b []byte) int
		keys    [2][]byte
	}{"lists": {ListsDataKeyComparator.Compare, lists}, "scores": {ZSetsScoreKeyComparator.Compare, scores},
		"bytes": {bytes.Compare, lists}} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for range b.N {
				n += c.compare(c.keys[0], c.keys[1])
			}
			if n > 0 {
				b.Error("wrong order")
			}
		})
	}
}
