package record

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCompareNames checks that numbers in names are compared by value and different names are never equal.
func TestCompareNames(t *testing.T) {
	want := []string{"", "0", "00", "2", "10", "10/rdb", "bar", "db0/sets", "db2/sets", "db10/hashes", "db10/sets", "foo", "x01", "x1", "x1a"}
	got := slices.Clone(want)
	rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	if slices.SortFunc(got, CompareNames); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for i, a := range want {
		for j, b := range want {
			if c := CompareNames(a, b); (c < 0) != (i < j) || (c > 0) != (i > j) {
				t.Errorf("%q, %q: %d", a, b, c)
			}
		}
	}
}
