package convert

import (
	"testing"

	"kvferry/internal/pass"
)

// TestAtOnce checks that one task per worker runs at once, in the worst case the largest ones.
func TestAtOnce(t *testing.T) {
	tasks := []pass.Task{{N: 0, Bytes: 1}, {N: 1, Bytes: 5}, {N: 2, Bytes: 4}, {N: 3, Bytes: 2}}
	for workers, want := range map[int]float64{1: 5, 2: 9, 3: 11, 4: 12, 9: 12} {
		if got := atOnce(tasks, workers); got != want {
			t.Errorf("%d workers: %v bytes, want %v", workers, got, want)
		}
	}
}

// TestSampleBudget checks that options override the default, that SampleBytes overrides SampleEvery, and that a
// fraction is never too small a sample.
func TestSampleBudget(t *testing.T) {
	const all = 1 << 40
	for _, c := range []struct {
		o    Options
		want int64
	}{
		{Options{}, usualBudget(all)}, {Options{Estimate: true}, usualBudget(all)}, {Options{SampleEvery: 1}, all}, {Options{SampleEvery: 16, Estimate: true}, all / 16},
		{Options{SampleEvery: all}, leastBudget}, {Options{SampleBytes: 1}, 1}, {Options{SampleBytes: 9, SampleEvery: 2, Estimate: true}, 9},
	} {
		if got := c.o.sampleBudget(all); got != c.want {
			t.Errorf("%d, every %d, estimate %v: %d, want %d", c.o.SampleBytes, c.o.SampleEvery, c.o.Estimate, got, c.want)
		}
	}
}
