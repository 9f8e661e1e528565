package pool

import (
	"fmt"
	"testing"

	"kvferry/convert/plan"
)

func TestLargestFirst(t *testing.T) {
	var order []int
	for _, x := range LargestFirst([]*plan.Task{{N: 0, Bytes: 1}, {N: 1, Bytes: 5}, {N: 2, Bytes: 5}, {N: 3, Bytes: 2}}) {
		order = append(order, x.N)
	}
	if fmt.Sprint(order) != "[1 2 3 0]" {
		t.Error(order)
	}
}

func TestShares(t *testing.T) {
	tasks := []*plan.Task{{Bytes: 1 << 30}, {Bytes: 1 << 20}, {Bytes: 3 << 30}, {Bytes: 0}}
	s := NewShares(400<<20, tasks, 2)
	for i, want := range []int64{100 << 20, LeastShare, 300 << 20, LeastShare} {
		if got := s.Of(tasks[i]); got != want {
			t.Errorf("task %d: %d, want %d", i, got, want)
		}
	}
	if got := NewShares(7, []*plan.Task{{}}, 9).Of(&plan.Task{}); got != 7 {
		t.Errorf("of empty tasks: %d", got)
	}
}
