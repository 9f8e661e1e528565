package codec

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
