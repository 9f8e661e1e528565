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
	Buckets  []int64
	Count    int64
	Sum      int64
	Min, Max int64
}

// Add counts a value. Negative values count as 0.
func (h *Histogram) Add(v int64) { h.AddSome(v, 1) }

// AddSome counts a value n times.
func (h *Histogram) AddSome(v, n int64) {
	v = max(v, 0)
	i := bucketOf(uint64(v))
	if v < h.Min || v > h.Max || i >= len(h.Buckets) {
		h.widen(i, v)
	}
	h.Buckets[i] += n
	h.Count += n
	h.Sum += n * v
}

// AddAll counts values, which must not be empty or contain negative values.
func (h *Histogram) AddAll(values []int64) {
	least, most, sum := values[0], int64(0), int64(0)
	for _, v := range values {
		least, most, sum = min(least, v), max(most, v), sum+v
	}
	h.widen(bucketOf(uint64(most)), most)
	h.widen(bucketOf(uint64(least)), least) // the least value must come last: widen sets min for an empty histogram
	for _, v := range values {
		h.Buckets[bucketOf(uint64(v))]++
	}
	h.Count += int64(len(values))
	h.Sum += sum
}

// widen extends the buckets and bounds for a value.
func (h *Histogram) widen(i int, v int64) {
	if h.Count == 0 {
		h.Min = v
	}
	h.Min, h.Max = min(h.Min, v), max(h.Max, v)
	for len(h.Buckets) <= i {
		h.Buckets = append(h.Buckets, make([]int64, max(subBuckets, i+1-len(h.Buckets)))...)
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
	if g.Count == 0 {
		return
	}
	if h.Count == 0 || g.Min < h.Min {
		h.Min = g.Min
	}
	h.Max = max(h.Max, g.Max)
	h.Count += g.Count
	h.Sum += g.Sum
	for len(h.Buckets) < len(g.Buckets) {
		h.Buckets = append(h.Buckets, 0)
	}
	for i, n := range g.Buckets {
		h.Buckets[i] += n
	}
}

// Quantile returns a value that a share q of the values does not exceed, within 1.6 %.
func (h *Histogram) Quantile(q float64) int64 {
	switch {
	case h.Count == 0:
		return 0
	case q <= 0:
		return h.Min
	case q >= 1:
		return h.Max
	}
	want := max(1, int64(math.Ceil(q*float64(h.Count))))
	var seen int64
	for i, n := range h.Buckets {
		if seen += n; seen >= want {
			from, to := bucketFrom(i), bucketFrom(i+1)-1
			return min(max(int64(from+(to-from)/2), h.Min), h.Max)
		}
	}
	return h.Max
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
	d := Distribution{Count: h.Count, Min: h.Min, Max: h.Max, P50: h.Quantile(0.5), P90: h.Quantile(0.9),
		P99: h.Quantile(0.99), Powers: []int64{}}
	if h.Count > 0 {
		d.Mean = float64(h.Sum) / float64(h.Count)
	}
	for i, n := range h.Buckets {
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
