package pass

import (
	"cmp"
	"slices"
)

// LeastShare is the minimum share of a task.
const LeastShare = 2 << 20

// Shares divides memory among tasks in proportion to their size, so that one giant task gets nearly all of it. The
// shares of any tasks that run at the same time add up to at most the whole, except for minimum shares.
type Shares struct {
	whole int64
	top   int64 // total size of the largest tasks, one per worker
}

// NewShares divides memory among tasks that run on the given number of workers.
func NewShares(whole int64, tasks []Task, workers int) Shares {
	sizes := make([]int64, len(tasks))
	for i, t := range tasks {
		sizes[i] = t.Bytes
	}
	slices.SortFunc(sizes, func(a, b int64) int { return cmp.Compare(b, a) })
	s := Shares{whole: whole}
	for _, n := range sizes[:min(workers, len(sizes))] {
		s.top += n
	}
	return s
}

// Of returns the share of a task.
func (s Shares) Of(t *Task) int64 {
	if s.top == 0 {
		return s.whole
	}
	return max(LeastShare, int64(float64(s.whole)*float64(t.Bytes)/float64(s.top)))
}
