package inspect

import (
	"math"

	"kvferry/record"
)

// elementBytes is the logical size of an element: its name and value, and 8 bytes for a score.
func elementBytes(t record.Type, e *record.Element) int64 {
	n := int64(len(e.Name) + len(e.Value))
	if t == record.ZSet {
		n += 8
	}
	return n
}

func scoreBits(f float64) uint64 { return math.Float64bits(f) }

func scoreOf(bits uint64) float64 { return math.Float64frombits(bits) }
