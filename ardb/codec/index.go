package codec

import (
	"cmp"
	"errors"
	"math"
)

// Indexes of a list are integers and floats. They ascend with the list as numbers; the comparator's order
// agrees only while it neither wraps around nor rounds.

// safeIndex is the limit up to which integers and floats compare alike in every version of the server.
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

// NearIndex reports whether rows around an index are in numeric order.
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

// Errors of rows of a list.
var (
	ErrNoIndex    = errors.New("a list index that is not a number")
	ErrIndexOrder = errors.New("a list index after a larger one")
)

// Indexes follows the indexes of a list.
type Indexes struct {
	any         bool
	first, last Data
	gaps        bool // not consecutive integers
}

// Follow takes the next index; it must be larger than the last.
func (x *Indexes) Follow(d Data) error {
	if !d.IsIndex() {
		return ErrNoIndex
	}
	if x.any {
		if CompareIndex(x.last, d) >= 0 {
			return ErrIndexOrder
		}
		x.gaps = x.gaps || d.Tag != TagInt || x.last.Tag != TagInt || d.Int != x.last.Int+1
	} else {
		x.first, x.any = d, true
		x.gaps = d.Tag != TagInt
	}
	x.last = d
	return nil
}

// Bounds returns how META's bounds are wrong, "" if they are right. A list that is not sequential may have
// wider bounds: LREM leaves them.
func (x *Indexes) Bounds(lo, hi Data, sequential bool) string {
	if !x.any {
		return ""
	}
	below, above := CompareIndex(lo, x.first), CompareIndex(x.last, hi)
	switch {
	case !lo.IsNumber() || !hi.IsNumber():
		return "META has no bounds"
	case below > 0 || above > 0:
		return "rows beyond META's bounds"
	case sequential && (below != 0 || above != 0 || x.gaps):
		return "META marks the list as sequential, but its indexes have gaps"
	}
	return ""
}

// IntRange follows the integers among the fields or members of a collection.
type IntRange struct {
	Any      bool
	Min, Max int64
}

// With returns the range with another integer.
func (r IntRange) With(v int64) IntRange {
	if !r.Any {
		return IntRange{true, v, v}
	}
	return IntRange{true, min(r.Min, v), max(r.Max, v)}
}

// Span is the distance between the smallest and the largest integer.
func (r IntRange) Span() uint64 { return uint64(r.Max) - uint64(r.Min) }

// Take adds a field or member.
func (r *IntRange) Take(d *Data) {
	if d.Tag == TagInt {
		*r = r.With(d.Int)
	}
}
