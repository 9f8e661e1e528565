package pq

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"kvferry/record"
)

// maxPageRows limits the rows of a page whose values or nulls are kept one by one, and maxBuilt the bytes of one whose
// values are put together from parts of others.
const (
	maxPageRows = 1 << 22
	maxBuilt    = 256 << 20
)

var errValues = fmt.Errorf("more values than the page has: %w", record.ErrShort)

// span is a byte string in the data of a page or dictionary.
type span struct{ off, n uint32 }

// values are the values of a page or dictionary that are not null.
type values struct {
	data  []byte // of spans
	spans []span
	nums  []int64 // integers, and the bits of float64
}

func (v *values) len() int { return max(len(v.spans), len(v.nums)) }

// isBytes reports whether values of a type are byte strings.
func isBytes(t Physical) bool { return t == ByteArray || t == FixedBytes || t == Int96 }

// hybrid reads the hybrid of runs and bit-packed groups, n values of a width, and calls f for each run.
func hybrid(b []byte, width, n int, f func(value uint32, n int)) error {
	if width > 32 {
		return fmt.Errorf("values of %d bits", width)
	}
	for n > 0 {
		head, k := binary.Uvarint(b)
		if k <= 0 {
			return record.ErrShort
		}
		b = b[k:]
		if head&1 == 1 {
			count := min(head>>1, uint64(n+minRun-1)/minRun)
			if count == 0 || count*uint64(width) > uint64(len(b)) {
				return record.ErrShort
			}
			m := min(int(count)*minRun, n)
			unpack(b, width, m, f)
			b, n = b[int(count)*width:], n-m
			continue
		}
		wide := (width + 7) / 8
		if head>>1 == 0 || len(b) < wide {
			return record.ErrShort
		}
		var value uint32
		for i := range wide {
			value |= uint32(b[i]) << (8 * i)
		}
		m := int(min(head>>1, uint64(n)))
		f(value, m)
		b, n = b[wide:], n-m
	}
	return nil
}

// unpack calls f for each of n values of some bits.
func unpack(b []byte, width, n int, f func(value uint32, n int)) {
	var word uint64
	have, at := 0, 0
	mask := uint64(1)<<width - 1
	for range n {
		for have < width {
			word |= uint64(b[at]) << have
			at, have = at+1, have+8
		}
		f(uint32(word&mask), 1)
		word, have = word>>width, have-width
	}
}

// decodeLevels decodes definition levels of 0 and 1. The slice is nil if all rows are alike.
func decodeLevels(dst []byte, b []byte, rows int) (levels []byte, nulls int, err error) {
	ones, done := 0, 0
	levels = dst[:0]
	mixed := false
	err = hybrid(b, 1, rows, func(v uint32, n int) {
		if !mixed && done > 0 && (v == 1) != (ones == done) {
			mixed = true
			if rows <= maxPageRows {
				levels = slices.Grow(levels, rows)
				for range done {
					levels = append(levels, byte(min(ones, 1)))
				}
			}
		}
		if mixed && rows <= maxPageRows {
			for range n {
				levels = append(levels, byte(v))
			}
		}
		done += n
		ones += n * int(v)
	})
	if err == nil && mixed && rows > maxPageRows {
		err = tooMany(rows)
	}
	if !mixed {
		levels = nil
	}
	return levels, rows - ones, err
}

func tooMany(rows int) error {
	return fmt.Errorf("a page of %d rows; kvferry reads %d at most: %w", rows, maxPageRows, record.ErrUnknown)
}

// decodeIDs decodes n indexes of a dictionary with some entries.
func decodeIDs(dst []uint32, b []byte, n, entries int) ([]uint32, error) {
	if n == 0 {
		return dst[:0], nil
	}
	if len(b) == 0 {
		return nil, record.ErrShort
	}
	if n > maxPageRows {
		return nil, tooMany(n)
	}
	dst = slices.Grow(dst[:0], n)
	beyond := false
	err := hybrid(b[1:], int(b[0]), n, func(v uint32, n int) {
		beyond = beyond || int(v) >= entries
		for range n {
			dst = append(dst, v)
		}
	})
	if err == nil && beyond {
		err = fmt.Errorf("an index beyond the %d entries of the dictionary", entries)
	}
	return dst, err
}

// decode decodes n values.
func (v *values) decode(b []byte, encoding, n int, leaf *Leaf) error {
	v.data, v.spans, v.nums = b, v.spans[:0], v.nums[:0]
	if n > maxPageRows {
		return tooMany(n)
	}
	number := !isBytes(leaf.Type)
	switch {
	case n == 0:
		return nil
	case encoding == encPlain || encoding == encPlainDict:
		return v.plain(b, n, leaf)
	case encoding == encRLE && leaf.Type == Boolean:
		if len(b) < 4 {
			return record.ErrShort
		}
		return hybrid(b[4:], 1, n, func(x uint32, n int) {
			for range n {
				v.nums = append(v.nums, int64(x))
			}
		})
	case encoding == encDelta && number:
		_, err := v.delta(b, n)
		return err
	case encoding == encDeltaLength && leaf.Type == ByteArray:
		rest, err := v.delta(b, n)
		if err == nil {
			err = v.cut(rest)
		}
		return err
	case encoding == encDeltaBytes && leaf.Type != Int96 && !number:
		return v.prefixes(b, n)
	case encoding == encSplit && leaf.Type != Boolean && leaf.Type != ByteArray:
		return v.split(b, n, leaf)
	}
	return record.Unknown(record.NoOffset, "encoding", fmt.Sprintf("%d of %s", encoding, leaf.Type))
}

// width returns the bytes of a value of a fixed size.
func (l *Leaf) width() int {
	switch l.Type {
	case Int32, Float:
		return 4
	case Int96:
		return 12
	case FixedBytes:
		return l.Length
	}
	return 8
}

func (v *values) plain(b []byte, n int, leaf *Leaf) error {
	switch leaf.Type {
	case Boolean:
		if len(b)*8 < n {
			return errValues
		}
		for i := range n {
			v.nums = append(v.nums, int64(b[i/8]>>(i%8)&1))
		}
		return nil
	case ByteArray:
		return v.strings(b, n)
	}
	w := leaf.width()
	if n > len(b)/w {
		return errValues
	}
	if len(b) != n*w {
		return record.ErrTrailing
	}
	for i := range n {
		v.fixed(b[i*w:(i+1)*w], i*w, leaf)
	}
	return nil
}

// fixed adds a value of a fixed size.
func (v *values) fixed(b []byte, off int, leaf *Leaf) {
	switch leaf.Type {
	case Int32:
		x := binary.LittleEndian.Uint32(b)
		if leaf.Meaning == Unsigned {
			v.nums = append(v.nums, int64(x))
		} else {
			v.nums = append(v.nums, int64(int32(x)))
		}
	case Float:
		v.nums = append(v.nums, int64(math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))))
	case Int64, Double:
		v.nums = append(v.nums, int64(binary.LittleEndian.Uint64(b)))
	default:
		v.spans = append(v.spans, span{uint32(off), uint32(len(b))})
	}
}

// strings reads byte strings after their lengths.
func (v *values) strings(b []byte, n int) error {
	if n > len(b)/4 {
		return errValues
	}
	v.spans = slices.Grow(v.spans, n)
	at := 0
	for range n {
		if len(b)-at < 4 {
			return errValues
		}
		size := binary.LittleEndian.Uint32(b[at:])
		if uint64(size) > uint64(len(b)-at-4) {
			return errValues
		}
		v.spans = append(v.spans, span{uint32(at + 4), size})
		at += 4 + int(size)
	}
	if at != len(b) {
		return record.ErrTrailing
	}
	return nil
}

// delta reads n integers as DELTA_BINARY_PACKED into nums, and returns the bytes after them.
func (v *values) delta(b []byte, n int) ([]byte, error) {
	var head [3]uint64
	for i := range head {
		x, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, record.ErrShort
		}
		head[i], b = x, b[k:]
	}
	value, k := binary.Varint(b)
	block, minis := int(min(head[0], 1<<16)), int(min(head[1], 1<<16))
	if k <= 0 || minis == 0 || block%minis != 0 || block/minis%32 != 0 || block == 0 {
		return nil, fmt.Errorf("blocks of %d in %d", head[0], head[1])
	}
	if head[2] != uint64(n) {
		return nil, fmt.Errorf("%d values, want %d", head[2], n)
	}
	b = b[k:]
	if n == 0 {
		return b, nil
	}
	v.nums = append(v.nums, value)
	for left := n - 1; left > 0; {
		least, k := binary.Varint(b)
		if k <= 0 || len(b)-k < minis {
			return nil, record.ErrShort
		}
		widths := b[k : k+minis]
		b = b[k+minis:]
		for m := 0; m < minis && left > 0; m++ {
			take := min(block/minis, left)
			size := block / minis / 8 * int(widths[m])
			if widths[m] > 64 || size > len(b) {
				return nil, record.ErrShort
			}
			value = v.miniblock(b[:size], int(widths[m]), take, value, least)
			b, left = b[size:], left-take
		}
	}
	return b, nil
}

// miniblock adds differences to the last value, which it returns.
func (v *values) miniblock(b []byte, width, n int, value, least int64) int64 {
	for i := range n {
		var x uint64
		for done := 0; done < width; {
			bit := i*width + done
			take := min(8-bit%8, width-done)
			x |= uint64(b[bit/8]>>(bit%8)&(1<<take-1)) << done
			done += take
		}
		value += least + int64(x)
		v.nums = append(v.nums, value)
	}
	return value
}

// cut makes spans of the lengths in nums.
func (v *values) cut(b []byte) error {
	v.data = b
	at := int64(0)
	for _, n := range v.nums {
		if n < 0 || n > int64(len(b))-at {
			return errValues
		}
		v.spans = append(v.spans, span{uint32(at), uint32(n)})
		at += n
	}
	v.nums = v.nums[:0]
	if at != int64(len(b)) {
		return record.ErrTrailing
	}
	return nil
}

// prefixes reads DELTA_BYTE_ARRAY: each value shares a prefix with its predecessor.
func (v *values) prefixes(b []byte, n int) error {
	var heads, tails values
	rest, err := heads.delta(b, n)
	if err == nil {
		rest, err = tails.delta(rest, n)
	}
	if err == nil {
		err = tails.cut(rest)
	}
	if err != nil {
		return err
	}
	var out []byte
	last := span{}
	for i, share := range heads.nums {
		tail := tails.at(i)
		if share < 0 || share > int64(last.n) {
			return errValues
		}
		if len(out)+int(share)+len(tail) > maxBuilt {
			return fmt.Errorf("values of more than %d bytes in a page: %w", maxBuilt, record.ErrUnknown)
		}
		from := len(out)
		out = append(append(out, out[last.off:last.off+uint32(share)]...), tail...)
		last = span{uint32(from), uint32(len(out) - from)}
		v.spans = append(v.spans, last)
	}
	v.data = out
	return nil
}

// split reads BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones.
func (v *values) split(b []byte, n int, leaf *Leaf) error {
	w := leaf.width()
	if n > len(b)/w {
		return errValues
	}
	if len(b) != n*w {
		return record.ErrTrailing
	}
	whole := make([]byte, len(b))
	for i, x := range b {
		whole[i%n*w+i/n] = x
	}
	v.data = whole
	return v.plain(whole, n, leaf)
}

// at returns a byte string.
func (v *values) at(i int) []byte {
	s := v.spans[i]
	return v.data[s.off : s.off+s.n : s.off+s.n]
}
