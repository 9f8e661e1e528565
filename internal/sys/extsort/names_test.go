package extsort

import (
	"strconv"
	"testing"
)

// TestNames checks that duplicates are detected at once in small sets, and at the end in large ones.
func TestNames(t *testing.T) {
	var s SeenNames
	dir := t.TempDir()
	for _, n := range []int{1, 40, MostNames + 10} {
		for _, told := range []bool{false, true} { // whether Expect is called
			if err := s.Reset(); err != nil {
				t.Fatal(err)
			}
			if told {
				s.Expect(int64(n))
			}
			seen := int64(0)
			for i := range n + 3 {
				twin, err := s.IsTwin(strconv.AppendInt(nil, int64(min(i, n-1)), 10), 0, dir)
				if err != nil {
					t.Fatal(err)
				}
				if twin {
					seen++
				}
			}
			if err := s.All(); err != nil || s.Twins != 3 ||
				n < MostNames && (seen != 3 || s.First != strconv.Quote(strconv.Itoa(n-1))) {
				t.Errorf("%d names: %d twins, %d at once, the first %s, %v", n, s.Twins, seen, s.First, err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
