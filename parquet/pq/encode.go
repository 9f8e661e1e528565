package pq

import (
	"encoding/binary"
	"math/bits"
)

// minRun is the length from which equal values are written as a run.
const minRun = 8

// appendHybrid appends values in the hybrid of runs and bit-packed groups:
//
//	run     +--------------------+----------------------+
//	        | count<<1 (uvarint) | value (⌈width/8⌉ B)  |
//	        +--------------------+----------------------+
//	packed  +------------------------+----------------------------------+
//	        | groups<<1|1 (uvarint)  | 8 values a group, width bits each |
//	        +------------------------+----------------------------------+
//
// Values are little-endian, the first in the lowest bits. The last group may have fewer than 8, padded with zeros.
func appendHybrid[T uint8 | uint32](dst []byte, values []T, width int) []byte {
	for i := 0; i < len(values); {
		if n := runLength(values[i:]); n >= minRun || n == len(values)-i {
			dst = appendRun(dst, uint32(values[i]), n, width)
			i += n
			continue
		}
		from := i
		for i += minRun; i < len(values) && !startsRun(values[i:]); {
			i += minRun
		}
		dst = appendPacked(dst, values[from:min(i, len(values))], width)
	}
	return dst
}

func runLength[T uint8 | uint32](values []T) int {
	n := 1
	for n < len(values) && values[n] == values[0] {
		n++
	}
	return n
}

func startsRun[T uint8 | uint32](values []T) bool {
	return len(values) >= minRun && runLength(values[:minRun]) == minRun
}

// appendRun appends a run of n equal values.
func appendRun(dst []byte, value uint32, n, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for w := 0; w < width; w += 8 {
		dst = append(dst, byte(value>>w))
	}
	return dst
}

func appendPacked[T uint8 | uint32](dst []byte, values []T, width int) []byte {
	groups := (len(values) + minRun - 1) / minRun
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	var word uint64
	have := 0
	for i := range groups * minRun {
		if i < len(values) {
			word |= uint64(values[i]) << have
		}
		for have += width; have >= 8; have -= 8 {
			dst = append(dst, byte(word))
			word >>= 8
		}
	}
	return dst
}

// widthOf returns the bits of a dictionary's indexes. Some readers do not expect 0.
func widthOf(entries int) int { return max(1, bits.Len(uint(max(entries-1, 0)))) }

// Sizes of the blocks of appendDelta.
const (
	deltaBlock = 128
	deltaMini  = 32
)

// appendDelta appends integers as DELTA_BINARY_PACKED: a head, then blocks of 128 differences, each in four miniblocks
// with a width of their own.
func appendDelta(dst []byte, values []int64) []byte {
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaBlock/deltaMini)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	if len(values) == 0 {
		return binary.AppendVarint(dst, 0)
	}
	dst = binary.AppendVarint(dst, values[0])
	var deltas [deltaBlock]int64
	for at := 1; at < len(values); at += deltaBlock {
		n := min(deltaBlock, len(values)-at)
		least := values[at] - values[at-1]
		for i := range n {
			deltas[i] = values[at+i] - values[at+i-1]
			least = min(least, deltas[i])
		}
		dst = appendDeltas(dst, deltas[:n], least)
	}
	return dst
}

func appendDeltas(dst []byte, deltas []int64, least int64) []byte {
	dst = binary.AppendVarint(dst, least)
	widths := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for m := 0; m*deltaMini < len(deltas); m++ {
		part := deltas[m*deltaMini : min(len(deltas), (m+1)*deltaMini)]
		var all uint64
		for _, v := range part {
			all |= uint64(v) - uint64(least)
		}
		width := bits.Len64(all)
		dst[widths+m] = byte(width)
		dst = appendBits(dst, part, least, width)
	}
	return dst
}

// appendBits packs 32 differences above the least; missing ones are zeros.
func appendBits(dst []byte, part []int64, least int64, width int) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, deltaMini*width/8)...)
	out := dst[from:]
	for i, v := range part {
		u := uint64(v) - uint64(least)
		for b := 0; b < width; b++ {
			bit := i*width + b
			out[bit/8] |= byte(u>>b&1) << (bit % 8)
		}
	}
	return dst
}
