package stats

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"
)

func TestHistogramQuantiles(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	var h, left, right Histogram
	var all []int64
	for i := range 50000 {
		v := int64(math.Exp(r.Float64() * 30))
		all = append(all, v)
		h.Add(v)
		if i%3 == 0 {
			left.Add(v)
		} else {
			right.Add(v)
		}
	}
	slices.Sort(all)
	left.Merge(&right)
	left.Merge(&Histogram{})
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
		got := h.Quantile(q)
		if diff := math.Abs(float64(got - want)); diff > float64(want)/64 {
			t.Errorf("quantile %v: %d, want %d within 1.6 %%", q, got, want)
		}
		if merged := left.Quantile(q); merged != got {
			t.Errorf("quantile %v of the merged halves: %d, want %d", q, merged, got)
		}
	}
	d := h.Distribution()
	if d.Min != all[0] || d.Max != all[len(all)-1] || d.Count != int64(len(all)) {
		t.Errorf("distribution %+v", d)
	}
	var n int64
	for _, c := range d.Powers {
		n += c
	}
	if n != d.Count {
		t.Errorf("%d values by powers of two, want %d", n, d.Count)
	}
}

func TestHistogramBuckets(t *testing.T) {
	for _, v := range []uint64{0, 1, 63, 64, 65, 127, 128, 1 << 20, 1<<20 + 5, math.MaxInt64} {
		i := bucketOf(v)
		if from := bucketFrom(i); from > v || i < bucketOf(math.MaxInt64) && bucketFrom(i+1) <= v {
			t.Errorf("%d is in bucket %d, which starts at %d", v, i, from)
		}
	}
	var h Histogram
	h.Add(-5)
	h.Add(math.MaxInt64)
	if h.Quantile(0) != 0 || h.Quantile(1) != math.MaxInt64 || (&Histogram{}).Quantile(0.5) != 0 {
		t.Error("the ends are wrong")
	}
	if d := (&Histogram{}).Distribution(); d.Mean != 0 || d.Powers == nil {
		t.Errorf("distribution of nothing: %+v", d)
	}
	if got := fmt.Sprint(func() []int64 {
		var h Histogram
		h.Add(0)
		h.Add(1)
		h.Add(3)
		h.Add(4)
		return h.Distribution().Powers
	}()); got != "[1 1 1 1]" {
		t.Errorf("powers %s", got)
	}
}
