package columns

import (
	"encoding/binary"
	"fmt"

	"kvferry/record"
)

// packedValues are decoded values: all of one size, or byte strings.
type packedValues struct {
	Data  []byte
	n     int
	size  int      // of each value
	From  []uint32 // where byte strings begin, and where one more would begin; nil: values have one size
	space uint32   // between byte strings, for their lengths
}

// Len returns the number of values.
func (v *packedValues) Len() int { return v.n }

// At returns a value, a view of the page.
func (v *packedValues) At(i int) []byte {
	if v.From == nil {
		return v.Data[i*v.size : (i+1)*v.size : (i+1)*v.size]
	}
	from, to := v.From[i], v.From[i+1]-v.space
	return v.Data[from:to:to]
}

// packedFixed returns n values of a size that follow each other (PLAIN).
func packedFixed(b []byte, n, size int) (packedValues, error) {
	if len(b)/max(size, 1) < n {
		return packedValues{}, record.ErrShort
	}
	return packedValues{Data: b, n: n, size: size}, nil
}

// packedStrings returns n byte strings, each after its length in 4 bytes (PLAIN). lengths is room to reuse.
func packedStrings(b []byte, n int, lengths []uint32) (packedValues, error) {
	const head = 4
	if len(b)/head < n {
		return packedValues{}, record.ErrShort
	}
	at, from := 0, append(lengths[:0], head)
	for range n {
		if len(b)-at < head {
			return packedValues{}, record.ErrShort
		}
		size := binary.LittleEndian.Uint32(b[at:])
		if at += head; uint64(size) > uint64(len(b)-at) {
			return packedValues{}, record.ErrShort
		}
		at += int(size)
		from = append(from, uint32(at+head))
	}
	return packedValues{Data: b, n: n, From: from, space: head}, nil // some writers leave bytes behind them
}

// packedBits returns n booleans of a bit each, the first in the lowest bit (PLAIN), as values of a byte.
func packedBits(b []byte, n int) (packedValues, error) {
	if len(b) < (n+7)/8 {
		return packedValues{}, record.ErrShort
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = b[i/8] >> (i % 8) & 1
	}
	return packedValues{Data: out, n: n, size: 1}, nil
}

// packedSplit returns n values whose first bytes come first, then all second bytes, and so on (BYTE_STREAM_SPLIT).
func packedSplit(b []byte, n, size int) (packedValues, error) {
	switch {
	case len(b)/max(size, 1) < n:
		return packedValues{}, record.ErrShort
	case len(b) > n*size:
		return packedValues{}, record.ErrTrailing
	}
	out := make([]byte, len(b))
	for i := range size {
		for k, c := range b[i*n : (i+1)*n] {
			out[k*size+i] = c
		}
	}
	return packedValues{Data: out, n: n, size: size}, nil
}

// packedDifferences returns n packed integers of 4 or 8 bytes (DELTA_BINARY_PACKED). Writers pack those of 4 bytes in up to
// 33 bits.
func packedDifferences(b []byte, n, size int) (packedValues, error) {
	values, _, err := ints(b, n)
	if err != nil {
		return packedValues{}, err
	}
	out := make([]byte, 0, size*n)
	for _, v := range values {
		if size == 4 {
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
		} else {
			out = binary.LittleEndian.AppendUint64(out, uint64(v))
		}
	}
	return packedValues{Data: out, n: n, size: size}, nil
}

// packedLengths returns n byte strings whose packed lengths come first (DELTA_LENGTH_BYTE_ARRAY).
func packedLengths(b []byte, n int) (packedValues, error) {
	lengths, b, err := ints(b, n)
	if err != nil {
		return packedValues{}, err
	}
	at, from := int64(0), make([]uint32, 1, n+1)
	for _, length := range lengths {
		if length < 0 || length > int64(len(b))-at {
			return packedValues{}, record.ErrShort
		}
		at += length
		from = append(from, uint32(at))
	}
	return packedValues{Data: b, n: n, From: from}, nil
}

// unfoldValues returns n values, each of which repeats a prefix of the value before (DELTA_BYTE_ARRAY). More than limit bytes are
// an error.
//
//	+-----------------------------+----------------------------+----------+
//	| lengths of prefixes, packed | lengths of the rest of the | the rest |
//	|                             | values, packed             |          |
//	+-----------------------------+----------------------------+----------+
//
// size is that of each value; 0: their lengths vary.
func unfoldValues(b []byte, n int, limit int64, size int) (packedValues, error) {
	same, b, err := ints(b, n)
	if err != nil {
		return packedValues{}, err
	}
	rest, err := packedLengths(b, n)
	if err != nil {
		return packedValues{}, err
	}
	out, from := []byte{}, make([]uint32, 1, n+1)
	var last []byte
	for i, old := range same {
		next := rest.At(i)
		switch length := old + int64(len(next)); {
		case old < 0 || old > int64(len(last)):
			return packedValues{}, record.ErrShort
		case int64(len(out))+length > limit:
			return packedValues{}, fmt.Errorf("more than %s bytes of values", record.Number(limit))
		case size > 0 && length != int64(size):
			return packedValues{}, fmt.Errorf("a value of %s bytes, want %s", record.Number(length), record.Number(size))
		}
		at := len(out)
		out = append(append(out, last[:old]...), next...)
		last = out[at:]
		from = append(from, uint32(len(out)))
	}
	return packedValues{Data: out, n: n, From: from}, nil
}
