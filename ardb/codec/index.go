package codec

import (
	"cmp"
	"math"
)

// Indexes of a list are integers and floats. As numbers they ascend with the list, in the comparator's order only as long as
// that neither wraps around nor rounds.

// safeIndex is up to where integers and floats compare alike in every version of the server.
const safeIndex = 1 << 30

// CompareIndex orders indexes as numbers, where the comparator wraps or rounds.
func CompareIndex(a, b Data) int {
	if a.Tag == TagInt && b.Tag == TagInt {
		return cmp.Compare(a.Int, b.Int)
	}
	if c := cmp.Compare(a.Number(), b.Number()); c != 0 {
		return c
	}
	return cmp.Compare(truncated(a), truncated(b))
}

func truncated(d Data) int64 {
	if d.Tag == TagInt {
		return d.Int
	}
	if d.F >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(d.F)
}

// NearIndex reports whether the order of rows around an index is that of numbers.
func NearIndex(d Data) bool {
	return d.IsNumber() && math.Abs(d.Number()) <= safeIndex
}

// CompareEncodedIndex is CompareIndex of encoded indexes.
func CompareEncodedIndex(a, b []byte) int {
	x, _ := SplitData(a)
	y, _ := SplitData(b)
	return CompareIndex(x, y)
}

// IsIndex reports whether d can be an index.
func (d *Data) IsIndex() bool { return d.IsNumber() && (d.Tag == TagInt || !math.IsNaN(d.F)) }

// RankFloat maps floats to numbers in the same order; 0.0 and -0.0 are one.
func RankFloat(f float64) uint64 {
	if f == 0 {
		f = 0
	}
	b := math.Float64bits(f)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}
