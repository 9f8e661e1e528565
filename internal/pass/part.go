package pass

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Part is a share of the tasks of a plan: number K of N, counted from 1. The zero value is all of them.
type Part struct{ K, N int }

// MaxParts limits the parts of a plan.
const MaxParts = 10000

// ParsePart reads what String writes.
func ParsePart(text string) (Part, error) {
	k, n, ok := strings.Cut(text, "/")
	p := Part{}
	var errs [2]error
	p.K, errs[0] = strconv.Atoi(k)
	p.N, errs[1] = strconv.Atoi(n)
	if !ok || errs != [2]error{} || p.N < 1 || p.N > MaxParts || p.K < 1 || p.K > p.N || p.String() != text {
		return Part{}, fmt.Errorf("%q is not a part: want K/N, such as 3/16, with K from 1 to N and N up to %d", text, MaxParts)
	}
	return p, nil
}

// String returns the part as K/N.
func (p Part) String() string { return fmt.Sprintf("%d/%d", p.K, p.N) }

// Name returns the part as K-of-N, for names of files.
func (p Part) Name() string { return fmt.Sprintf("%d-of-%d", p.K, p.N) }

// Of returns the tasks of the part: consecutive ones, of about one N-th of the work. The parts of a plan have each
// task once, whatever computes them: only integers are added up.
func (p Part) Of(tasks []Task) []Task {
	if p.N == 0 {
		return tasks
	}
	var total uint64
	for i := range tasks {
		total += effort(&tasks[i])
	}
	var before uint64
	from, to := len(tasks), len(tasks)
	for i := range tasks {
		effort := effort(&tasks[i])
		hi, lo := bits.Mul64(before+effort/2, uint64(p.N))
		k, _ := bits.Div64(hi, lo, total) // of the middle of the task, which lies below total
		if int(k) >= p.K-1 {
			from = min(from, i)
		}
		if int(k) >= p.K {
			to = min(to, i)
		}
		before += effort
	}
	return tasks[from:to]
}

// Missing lists the parts of n, by number, that are not done.
func Missing(n int, done func(Part) bool) (out []int) {
	for k := 1; k <= n; k++ {
		if !done(Part{K: k, N: n}) {
			out = append(out, k)
		}
	}
	return out
}

// effort is above 0, so that tasks of no known size are divided, too.
func effort(t *Task) uint64 { return uint64(max(t.Work(), 0)) + 1 }
