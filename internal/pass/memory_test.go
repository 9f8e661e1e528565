package pass

import (
	"fmt"
	"testing"

	"kvferry/record"
)

func TestLargestFirst(t *testing.T) {
	var order []int
	all, sets := record.Of(record.String, record.Set), record.Of(record.Set)
	for _, x := range LargestFirst([]Task{{N: 0, Types: sets, Bytes: 1}, {N: 1, Types: all, Bytes: 5},
		{N: 2, Types: all, Bytes: 5}, {N: 3, Types: sets, Bytes: 3}}) {
		order = append(order, x.N)
	}
	if fmt.Sprint(order) != "[3 1 2 0]" {
		t.Error(order)
	}
}

func TestShares(t *testing.T) {
	tasks := []Task{{Bytes: 1 << 30}, {Bytes: 1 << 20}, {Bytes: 3 << 30}, {Bytes: 0}}
	s := NewShares(400<<20, tasks, 2)
	for i, want := range []int64{100 << 20, LeastShare, 300 << 20, LeastShare} {
		if got := s.Of(&tasks[i]); got != want {
			t.Errorf("task %d: %d, want %d", i, got, want)
		}
	}
	if got := NewShares(7, []Task{{}}, 9).Of(&Task{}); got != 7 {
		t.Errorf("of empty tasks: %d", got)
	}
}
