package stats

import (
	"math"
	"math/bits"
)

// subBuckets is the number of buckets per power of two: smaller values are exact, larger ones are known within
// 1/subBuckets, less than 1.6 %.
const (
	subBits    = 6
	subBuckets = 1 << subBits
)

// Histogram counts values from 0 in buckets whose width grows with the value. Min, max, count and sum
// are exact, quantiles are within 1.6 %. It uses at most 30 KiB.
type Histogram struct {
	buckets  []int64
	count    int64
	sum      int64
	min, max int64
}

// Add counts a value. Negative values count as 0.
func (h *Histogram) Add(v int64) { h.AddSome(v, 1) }

// AddSome counts a value n times.
func (h *Histogram) AddSome(v, n int64) {
	v = max(v, 0)
	i := bucketOf(uint64(v))
	if v < h.min || v > h.max || i >= len(h.buckets) {
		h.widen(i, v)
	}
	h.buckets[i] += n
	h.count += n
	h.sum += n * v
}

// addAll counts values, which must not be empty or contain negative values.
func (h *Histogram) addAll(values []int64) {
	least, most, sum := values[0], int64(0), int64(0)
	for _, v := range values {
		least, most, sum = min(least, v), max(most, v), sum+v
	}
	h.widen(bucketOf(uint64(most)), most)
	h.widen(bucketOf(uint64(least)), least) // the least value must come last: widen sets min for an empty histogram
	for _, v := range values {
		h.buckets[bucketOf(uint64(v))]++
	}
	h.count += int64(len(values))
	h.sum += sum
}

// widen extends the buckets and bounds for a value.
func (h *Histogram) widen(i int, v int64) {
	if h.count == 0 {
		h.min = v
	}
	h.min, h.max = min(h.min, v), max(h.max, v)
	for len(h.buckets) <= i {
		h.buckets = append(h.buckets, make([]int64, max(subBuckets, i+1-len(h.buckets)))...)
	}
}

// bucketOf returns the bucket of a value.
func bucketOf(v uint64) int {
	if v < subBuckets {
		return int(v)
	}
	e := bits.Len64(v) - 1 - subBits
	return (e+1)<<subBits | int(v>>e)&(subBuckets-1)
}

// bucketFrom returns the smallest value of a bucket.
func bucketFrom(i int) uint64 {
	if i < subBuckets {
		return uint64(i)
	}
	e := i>>subBits - 1
	return uint64(subBuckets|i&(subBuckets-1)) << e
}

// Merge adds all of g.
func (h *Histogram) Merge(g *Histogram) {
	if g.count == 0 {
		return
	}
	if h.count == 0 || g.min < h.min {
		h.min = g.min
	}
	h.max = max(h.max, g.max)
	h.count += g.count
	h.sum += g.sum
	for len(h.buckets) < len(g.buckets) {
		h.buckets = append(h.buckets, 0)
	}
	for i, n := range g.buckets {
		h.buckets[i] += n
	}
}

// Quantile returns a value that a share q of the values does not exceed, within 1.6 %.
func (h *Histogram) Quantile(q float64) int64 {
	switch {
	case h.count == 0:
		return 0
	case q <= 0:
		return h.min
	case q >= 1:
		return h.max
	}
	want := max(1, int64(math.Ceil(q*float64(h.count))))
	var seen int64
	for i, n := range h.buckets {
		if seen += n; seen >= want {
			from, to := bucketFrom(i), bucketFrom(i+1)-1
			return min(max(int64(from+(to-from)/2), h.min), h.max)
		}
	}
	return h.max
}

// Distribution summarizes a histogram.
type Distribution struct {
	Count int64   `json:"count"`
	Min   int64   `json:"min"`
	Mean  float64 `json:"mean"`
	P50   int64   `json:"p50"`
	P90   int64   `json:"p90"`
	P99   int64   `json:"p99"`
	Max   int64   `json:"max"`
	// Powers counts the values of each power of two: [0], [1], [2,3], [4,7], …
	Powers []int64 `json:"powers_of_two"`
}

// Distribution summarizes the histogram.
func (h *Histogram) Distribution() Distribution {
	d := Distribution{Count: h.count, Min: h.min, Max: h.max, P50: h.Quantile(0.5), P90: h.Quantile(0.9),
		P99: h.Quantile(0.99), Powers: []int64{}}
	if h.count > 0 {
		d.Mean = float64(h.sum) / float64(h.count)
	}
	for i, n := range h.buckets {
		if n == 0 {
			continue
		}
		p := bits.Len64(bucketFrom(i))
		for len(d.Powers) <= p {
			d.Powers = append(d.Powers, 0)
		}
		d.Powers[p] += n
	}
	return d
}
