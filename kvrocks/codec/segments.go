package codec

import (
	"fmt"
	"math/bits"
	"strconv"

	"kvferry/record"
)

// SegmentLen is the length of the segments of a bitmap. The rest of a segment's key is the offset of its first byte in
// decimal. A segment may end after the last written byte; the rest is zeros. Bits count from the low end of a byte, so
// in Redis each byte is reversed. A segment without a row is zeros.
const SegmentLen = 1024

// maxBitmap is the length of the longest bitmap, whose last bit is 2^32-1.
const maxBitmap = 1 << 29

// AppendSegment appends the rest of the key of a segment: its offset, or its number, in decimal.
func AppendSegment(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

// DecodeDecimal decodes a number in the form of AppendSegment.
func DecodeDecimal(b []byte, field string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil || n > most || len(b) > 1 && b[0] == '0' || b[0] == '+' {
		return 0, &record.CorruptError{Field: field, Err: fmt.Errorf("%s is not a number from 0 to %d", record.Quote(b), most)}
	}
	return n, nil
}

// DecodeSegment decodes the rest of the key of a bitmap's segment.
func DecodeSegment(b []byte) (off uint64, err error) {
	off, err = DecodeDecimal(b, "offset", maxBitmap-SegmentLen)
	if err == nil && off%SegmentLen != 0 {
		err = &record.CorruptError{Field: "offset", Err: fmt.Errorf("%d is not a multiple of %d", off, SegmentLen)}
	}
	return off, err
}

// Reverse copies bytes from src to dst with their bits reversed, up to the shorter length.
func Reverse(dst, src []byte) {
	for i := range min(len(dst), len(src)) {
		dst[i] = bits.Reverse8(src[i])
	}
}

// A HyperLogLog has HLLSegments segments of HLLSegmentLen bytes, numbered in decimal. Joined they are the dense
// registers of Redis; a segment without a row is zeros.
const (
	HLLSegments   = 16
	HLLSegmentLen = 768
	HLLDense      = 0 // the only encoding
)

// DecodeHLLSegment decodes the rest of the key of a HyperLogLog's segment.
func DecodeHLLSegment(b []byte) (n uint64, err error) {
	return DecodeDecimal(b, "segment", HLLSegments-1)
}

// HLLHeader starts a dense HyperLogLog of Redis whose cached count is stale.
var HLLHeader = append([]byte("HYLL\x00\x00\x00\x00"), 0, 0, 0, 0, 0, 0, 0, 0x80)
