package columns

import (
	"encoding/binary"
	"fmt"

	"kvferry/record"
)

// unfold makes a page of plain values of one whose values leave out what they begin with like the value before
// (DELTA_BYTE_ARRAY). The library would unfold a few bytes to any size.
//
//	+---------------------------+----------------------------+-------+
//	| lengths of the beginnings | lengths of what is left    | bytes |
//	| that are the same, packed | of the values, packed      |       |
//	+---------------------------+----------------------------+-------+
//
// sized puts the length before each value, as in a page of values of variable length.
func unfold(b []byte, n int64, sized bool) (out []byte, err error) {
	limit := max(maxForeignPage, maxForeignRatio*int64(len(b)))
	same, b, err := packedInts(b, n)
	if err != nil {
		return nil, err
	}
	lengths, b, err := packedInts(b, n)
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
		if sized {
			out = binary.LittleEndian.AppendUint32(out, uint32(old+length))
		}
		at := len(out)
		out = append(append(out, last[:old]...), b[:length]...)
		last, b = out[at:], b[length:]
	}
	return out, nil
}

// packedInts decodes at most n packed differences (DELTA_BINARY_PACKED), and returns what follows them.
//
//	+----------------------+-----------------------+----------------+---------------+--------+
//	| block size (uvarint) | parts of it (uvarint) | values         | first value   | blocks |
//	|                      |                       | (uvarint)      | (varint)      |        |
//	+----------------------+-----------------------+----------------+---------------+--------+
//
// A block begins with the least of its differences (varint) and the width of each part in bits (1B). The differences
// follow without the least one, the first in the lowest bits. Parts without values are missing.
func packedInts(b []byte, n int64) (out []int64, rest []byte, err error) {
	if err := differences(b, n); err != nil {
		return nil, nil, err
	}
	var head [3]uint64
	for i := range head {
		var w int
		head[i], w = binary.Uvarint(b)
		b = b[w:]
	}
	size, parts, count := head[0], head[1], int(head[2])
	if parts == 0 || parts > uint64(len(b)) || size%(8*parts) != 0 || size > uint64(maxForeignValues) {
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
	for i := range width {
		v |= uint64(b[(at+i)/8]>>((at+i)%8)&1) << i
	}
	return v
}
