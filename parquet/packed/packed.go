// Package packed checks and decodes packed integers in the pages of Parquet files: runs, differences, and the lengths of
// values without common prefixes. It compares each count with the rest of the bytes, or with a limit.
package packed

import (
	"encoding/binary"
	"fmt"

	"kvferry/record"
)

const (
	maxBlock = 1 << 22 // values of a block of differences
	maxPacks = 1 << 20 // packs of a run
)

// CheckDifferences checks the number of values of packed differences: after the sizes of a block and of its parts.
func CheckDifferences(b []byte, values int64) error {
	var u uint64
	for range 3 {
		n := 0
		if u, n = binary.Uvarint(b); n <= 0 {
			return record.ErrShort
		}
		b = b[n:]
	}
	if u > uint64(values) {
		return fmt.Errorf("%s differences of %s values", record.Number(u), record.Number(values))
	}
	return nil
}

// CheckRuns checks that runs of values with so many bits have at most so many values. A run is one value with
// a count, or packs of 8 values.
func CheckRuns(b []byte, width, left int64) error {
	if width > 32 {
		return fmt.Errorf("values of %s bits", record.Number(width))
	}
	for len(b) > 0 {
		head, n := binary.Uvarint(b)
		if n <= 0 {
			return record.ErrShort
		}
		b = b[n:]
		count, size := head>>1, (width+7)/8
		if head&1 == 1 && count <= maxPacks {
			count, size = count*8, int64(count)*width
		}
		if count > uint64(left) {
			return fmt.Errorf("a run of %s values, %s are left", record.Number(count), record.Number(left))
		}
		if left -= int64(count); size > int64(len(b)) {
			return record.ErrShort
		}
		b = b[size:]
	}
	return nil
}

// Unfold decodes values without the prefixes that they share with the value before (DELTA_BYTE_ARRAY), and encodes them
// as plain ones of at most limit bytes. The library would unfold a few bytes to any size.
//
//	+-----------------------------+----------------------------+----------+
//	| lengths of prefixes, packed | lengths of the rest of the | the rest |
//	|                             | values, packed             |          |
//	+-----------------------------+----------------------------+----------+
//
// size is that of each value; 0: their lengths vary, and Unfold puts the length before each.
func Unfold(b []byte, n, limit, size int64) (out []byte, err error) {
	same, b, err := ints(b, n)
	if err != nil {
		return nil, err
	}
	lengths, b, err := ints(b, n)
	if err != nil {
		return nil, err
	}
	if len(same) != len(lengths) {
		return nil, fmt.Errorf("%s beginnings of %s values", record.Number(len(same)), record.Number(len(lengths)))
	}
	var last []byte
	for i, old := range same {
		length := lengths[i]
		if old < 0 || old > int64(len(last)) || length < 0 || length > int64(len(b)) {
			return nil, record.ErrShort
		}
		if int64(len(out))+old+length > limit {
			return nil, fmt.Errorf("more than %s bytes of values", record.Number(limit))
		}
		if size == 0 {
			out = binary.LittleEndian.AppendUint32(out, uint32(old+length))
		} else if old+length != size {
			return nil, fmt.Errorf("a value of %s bytes, want %s", record.Number(old+length), record.Number(size))
		}
		at := len(out)
		out = append(append(out, last[:old]...), b[:length]...)
		last, b = out[at:], b[length:]
	}
	return out, nil
}

// Differences decodes at most n packed differences (DELTA_BINARY_PACKED) as plain integers of 4 bytes. DuckDB packs those of
// unsigned integers in up to 33 bits, of which the library would make other values.
func Differences(b []byte, n int64) ([]byte, error) {
	values, _, err := ints(b, n)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out, nil
}

// ints decodes at most n packed differences (DELTA_BINARY_PACKED), and returns the rest of b.
//
//	+----------------------+-----------------------+----------------+---------------+--------+
//	| block size (uvarint) | parts of it (uvarint) | values         | first value   | blocks |
//	|                      |                       | (uvarint)      | (varint)      |        |
//	+----------------------+-----------------------+----------------+---------------+--------+
//
// A block begins with the least of its differences (varint) and the width of each part in bits (1B). The differences
// follow without the least one, the first in the lowest bits. Parts without values are missing.
func ints(b []byte, n int64) (out []int64, rest []byte, err error) {
	if err := CheckDifferences(b, n); err != nil {
		return nil, nil, err
	}
	var head [3]uint64
	for i := range head {
		var w int
		head[i], w = binary.Uvarint(b)
		b = b[w:]
	}
	size, parts, count := head[0], head[1], int(head[2])
	if parts == 0 || parts > uint64(len(b)) || size%(8*parts) != 0 || size > maxBlock {
		return nil, nil, fmt.Errorf("blocks of %s in %s parts", record.Number(size), record.Number(parts))
	}
	value, w := binary.Varint(b)
	if w <= 0 {
		return nil, nil, record.ErrShort
	}
	b = b[w:]
	if count > 0 {
		out = append(out, value)
	}
	for len(out) < count {
		least, w := binary.Varint(b)
		if w <= 0 || uint64(len(b)-w) < parts {
			return nil, nil, record.ErrShort
		}
		widths := b[w:][:parts]
		b = b[w+int(parts):]
		for _, width := range widths {
			if len(out) == count {
				break
			}
			each := int(size / parts)
			bytes := each / 8 * int(width)
			if width > 64 || bytes > len(b) {
				return nil, nil, record.ErrShort
			}
			for i := 0; i < each && len(out) < count; i++ {
				value += least + int64(bitsAt(b, i*int(width), int(width)))
				out = append(out, value)
			}
			b = b[bytes:]
		}
	}
	return out, b, nil
}

// bitsAt returns width bits, the lowest first.
func bitsAt(b []byte, at, width int) (v uint64) {
	var room [9]byte
	if b = b[at/8:]; len(b) < len(room) {
		copy(room[:], b)
		b = room[:]
	}
	v = binary.LittleEndian.Uint64(b)>>(at%8) | uint64(b[8])<<(64-at%8)
	return v & (1<<width - 1)
}
