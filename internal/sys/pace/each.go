package pace

import (
	"sync"
	"sync/atomic"
)

// Each calls do with the numbers from 0 to n-1, on at most the given number of goroutines. It waits for all calls and
// returns the error of the lowest number.
func Each(n, goroutines int, do func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, goroutines) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
