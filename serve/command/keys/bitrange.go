package keys

import (
	"math/bits"

	"kvferry/internal/shared/argument"
)

// bitAt returns a bit of a string, with zeros after its end.
func bitAt(b []byte, at int64) int64 {
	if at>>3 >= int64(len(b)) {
		return 0
	}
	return int64(b[at>>3] >> (7 - at&7) & 1)
}

// bitRange is a range of bytes or bits.
type bitRange struct {
	start, end   int64
	given, endIs bool // a start was given; an end was
	bits         bool
}

// Read parses start, end and the unit, of which an end may be missing for BITPOS.
func (r *bitRange) Read(args [][]byte, endOptional bool) (err error) {
	r.end = -1
	if len(args) == 0 {
		return nil
	}
	if len(args) > 3 || len(args) == 1 && !endOptional {
		return argument.ErrSyntax
	}
	r.given = true
	if r.start, err = argument.ParseInt(args[0]); err != nil {
		return err
	}
	if len(args) > 1 && !endOptional { // BITCOUNT looks at the numbers first
		if r.end, err = argument.ParseInt(args[1]); err != nil {
			return err
		}
	}
	if len(args) == 3 {
		switch {
		case argument.Is(args[2], "BIT"):
			r.bits = true
		case !endOptional && r.end < r.start && r.start < 0: // BITCOUNT looks at the unit last
		case !argument.Is(args[2], "BYTE"):
			return argument.ErrSyntax
		}
	}
	if len(args) > 1 {
		r.endIs = true
		r.end, err = argument.ParseInt(args[1])
	}
	return err
}

// of returns the first and last bit of the range in a string; it is empty if last < first.
func (r *bitRange) of(b []byte) (first, last int64) {
	n := int64(len(b))
	if r.bits {
		n *= 8
	}
	start, end := r.start, r.end
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	if end = min(end, n-1); start > end {
		return 0, -1
	}
	if r.bits {
		return start, end
	}
	return start * 8, end*8 + 7
}

// Count counts the bits of a string that are set in the range.
func (r *bitRange) Count(b []byte) (n int64) {
	if r.start < 0 && r.end < 0 && r.start > r.end {
		return 0
	}
	first, last := r.of(b)
	for ; first <= last && first&7 != 0; first++ {
		n += bitAt(b, first)
	}
	for ; first+7 <= last; first += 8 {
		n += int64(bits.OnesCount8(b[first>>3]))
	}
	for ; first <= last; first++ {
		n += bitAt(b, first)
	}
	return n
}

// Find returns the offset of the first bit in the range with a value, or -1. Zeros follow a string unless the
// range has an end.
func (r *bitRange) Find(b []byte, want int64) int64 {
	first, last := r.of(b)
	at := find(b, first, last, want)
	if at < 0 && want == 0 && !r.endIs && last >= first {
		at = int64(len(b)) * 8
	}
	return at
}

// find returns the offset of the first bit with a value, or -1.
func find(b []byte, first, last, want int64) int64 {
	skip := byte(0xff)
	if want == 1 {
		skip = 0
	}
	for first <= last {
		if first&7 == 0 && first+7 <= last && b[first>>3] == skip {
			first += 8
			continue
		}
		if bitAt(b, first) == want {
			return first
		}
		first++
	}
	return -1
}

// bitField returns the number that a field of bits holds in a string.
func bitField(b []byte, f *argument.BitOp) int64 {
	v := uint64(0)
	for i := range f.Width {
		v = v<<1 | uint64(bitAt(b, f.Off+i))
	}
	if f.Signed && v>>(f.Width-1) == 1 {
		v |= ^uint64(0) << (f.Width - 1)
	}
	return int64(v)
}
