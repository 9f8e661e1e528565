package columns

import (
	"encoding/binary"
	"fmt"

	"kvferry/record"
)

const (
	maxBlock = 1 << 22 // values of a block of differences
	maxPacks = 1 << 32 // of a run; fewer than a multiplication could overflow with
	// filler is the most values that may follow the last one in a run: DuckDB fills it up to 256.
	filler = 255
)

// packedRuns decodes n values of so many bits (RLE), and appends them to dst.
//
//	+----------------------------+----------------------------------------------+
//	| count<<1 (uvarint)         | one value, in whole bytes, that many times   |
//	| packs<<1 | 1 (uvarint)     | 8 values for each pack, in the lowest bits   |
//	|                            | first                                        |
//	+----------------------------+----------------------------------------------+
func packedRuns[T uint8 | uint32](dst []T, b []byte, width, n int) ([]T, error) {
	if width > 32 {
		return dst, fmt.Errorf("values of %s bits", record.Number(width))
	}
	for end := len(dst) + n; len(dst) < end; {
		left := end - len(dst)
		if width == 0 { // writers leave the bytes out
			return append(dst, make([]T, left)...), nil
		}
		head, w := binary.Uvarint(b)
		if w <= 0 {
			return dst, record.ErrShort
		}
		b = b[w:]
		count, size := head>>1, (width+7)/8
		packs := head&1 == 1
		if packs {
			count = min(count, maxPacks)
			count, size = count*8, int(count)*width
		}
		if count > uint64(left+filler) {
			return dst, fmt.Errorf("a run of %s values, %s are left", record.Number(count), record.Number(left))
		}
		if packs {
			// Writers may leave out the end of the last pack.
			if count = min(count, uint64(left)); size > len(b) && (int(count)*width+7)/8 <= len(b) {
				size = len(b)
			}
		}
		if size > len(b) {
			return dst, record.ErrShort
		}
		var value uint64
		if !packs {
			value = bitsAt(b[:size], 0, 8*size)
		}
		for i := range min(int(count), left) {
			if packs {
				value = bitsAt(b, i*width, width)
			}
			dst = append(dst, T(value))
		}
		b = b[size:]
	}
	return dst, nil
}

// packedBools returns n booleans in runs, after their length in 4 bytes.
func packedBools(b []byte, n int) (packedValues, error) {
	runs, _, err := packedPart(b)
	if err != nil {
		return packedValues{}, err
	}
	out, err := packedRuns(make([]uint8, 0, n), runs, 1, n)
	return packedValues{Data: out, n: n, size: 1}, err
}

// packedPart cuts off a part that begins with its length in 4 bytes.
func packedPart(b []byte) (part, rest []byte, err error) {
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return nil, nil, record.ErrShort
	}
	n := 4 + int(binary.LittleEndian.Uint32(b))
	return b[4:n], b[n:], nil
}

// ints decodes n packed differences (DELTA_BINARY_PACKED), and returns the rest of b.
//
//	+----------------------+-----------------------+----------------+---------------+--------+
//	| block size (uvarint) | parts of it (uvarint) | values         | first value   | blocks |
//	|                      |                       | (uvarint)      | (varint)      |        |
//	+----------------------+-----------------------+----------------+---------------+--------+
//
// A block begins with the least of its differences (varint) and the width of each part in bits (1B). The differences
// follow without the least one, the first in the lowest bits. Parts without values are missing.
func ints(b []byte, n int) (out []int64, rest []byte, err error) {
	var head [3]uint64
	for i := range head {
		var w int
		if head[i], w = binary.Uvarint(b); w <= 0 {
			return nil, nil, record.ErrShort
		}
		b = b[w:]
	}
	size, parts, count := head[0], head[1], head[2]
	if count != uint64(n) {
		return nil, nil, fmt.Errorf("%s differences of %s values", record.Number(count), record.Number(n))
	}
	value, w := binary.Varint(b)
	if w <= 0 && n == 0 {
		return nil, b, nil // some writers leave it out
	} else if w <= 0 {
		return nil, nil, record.ErrShort
	}
	b = b[w:]
	if n > 0 {
		out = append(make([]int64, 0, n), value)
	}
	if n > 1 && (parts == 0 || size > maxBlock || size%(8*parts) != 0) {
		return nil, nil, fmt.Errorf("blocks of %s in %s parts", record.Number(size), record.Number(parts))
	}
	for len(out) < n {
		least, w := binary.Varint(b)
		if w <= 0 || uint64(len(b)-w) < parts {
			return nil, nil, record.ErrShort
		}
		widths := b[w:][:parts]
		b = b[w+int(parts):]
		for _, width := range widths {
			if len(out) == n {
				break
			}
			each := int(size / parts)
			bytes := each / 8 * int(width)
			have := min(each, n-len(out))
			if bytes > len(b) && (have*int(width)+7)/8 <= len(b) {
				bytes = len(b) // some writers leave out the end of the last part
			}
			if width > 64 || bytes > len(b) {
				return nil, nil, record.ErrShort
			}
			for i := range have {
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
