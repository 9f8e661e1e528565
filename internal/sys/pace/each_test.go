package pace

import (
	"errors"
	"sync/atomic"
	"testing"
)

// TestEach checks that each number is processed once, that parallelism is limited, and that the error is that of the
// lowest number.
func TestEach(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for _, n := range []int{0, 1, 2, 5, 100} {
		for _, goroutines := range []int{1, 2, 7} {
			calls := make([]int, n)
			var busy atomic.Int32
			err := Each(n, goroutines, func(i int) error {
				if is := int(busy.Add(1)); is > goroutines {
					t.Errorf("%d at once, want %d at most", is, goroutines)
				}
				defer busy.Add(-1)
				calls[i]++
				switch i {
				case 3:
					return first
				case 4:
					return second
				}
				return nil
			})
			if n > 3 && err != first || n <= 3 && err != nil {
				t.Errorf("%d on %d: %v", n, goroutines, err)
			}
			for i, c := range calls {
				if c != 1 {
					t.Errorf("%d on %d: %d was called %d times", n, goroutines, i, c)
				}
			}
		}
	}
}
