package record

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCompareNames checks that numbers in names are compared by value and different names are never equal.
func TestCompareNames(t *testing.T) {
	want := []string{"", "0", "00", "2", "10", "10/rdb", "bar", "db0/sets", "db2/sets", "db10/hashes", "db10/sets", "foo", "x01",
		"x1", "x1a"}
	got := slices.Clone(want)
	rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, CompareNames)
	if !slices.Equal(got, want) {
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

// TestPercent: a share has no exponent, and is 0 % and 100 % only of nothing and of all.
func TestPercent(t *testing.T) {
	for want, c := range map[string][2]int64{"0 %": {0, 5}, "< 0.1 %": {1, 100_000}, "0.1 %": {1, 1000}, "9.1 %": {10, 110},
		"12 %": {12, 100}, "99.7 %": {304, 305}, "> 99.9 %": {99_999, 100_000}, "100 %": {7, 7}} {
		if got := Percent(c[0], c[1]); got != want {
			t.Errorf("%d of %d: %s, want %s", c[0], c[1], got, want)
		}
	}
}
