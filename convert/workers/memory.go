package workers

import (
	"cmp"
	"slices"

	"kvferry/convert/plan"
)

// LeastShare is what a task gets however small it is.
const LeastShare = 2 << 20

// Shares divides memory among the tasks of a pool by what they have to read, so that one giant
// record gets nearly all of it when the rest is small. Any tasks that run at once stay within the
// whole, but for the least shares.
type Shares struct {
	whole int64
	top   int64 // bytes of the largest tasks, as many as run at once
}

// NewShares plans for tasks of which so many run at once.
func NewShares(whole int64, tasks []*plan.Task, workers int) Shares {
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
func (s Shares) Of(t *plan.Task) int64 {
	if s.top == 0 {
		return s.whole
	}
	return max(LeastShare, int64(float64(s.whole)*float64(t.Bytes)/float64(s.top)))
}
