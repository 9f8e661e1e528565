package sst

import (
	"encoding/binary"

	"github.com/klauspost/compress/s2"

	"kvferry/store/rocks/blocks"
)

// A batch, the unit of compression, ends after batchBlocks blocks or when it reaches batchBytes.
const (
	batchBlocks = 16
	batchBytes  = 256 << 10
)

// batchSizes tracks sizes for Size, which decides where tables end. So it must not depend on which core compresses, or
// when: until the current batch ends, the batch before it counts uncompressed.
type batchSizes struct {
	raw     int64 // bytes of all blocks
	lastRaw int64 // raw at the end of the last batch
	stored  int64 // bytes in the file
	// known and knownRaw are stored and raw at the end of the batch before the last.
	known, knownRaw int64
}

// end ends a batch after all earlier ones were written.
func (s *batchSizes) end() {
	s.known, s.knownRaw = s.stored, s.lastRaw
	s.lastRaw = s.raw
}

// recordBlock records a block that is in the file, as is everything before it.
func (s *batchSizes) recordBlock(raw, stored int64) {
	s.raw += raw
	s.lastRaw, s.knownRaw = s.raw, s.raw
	s.stored, s.known = stored, stored
}

// batch is the size of the batch being built.
func (s *batchSizes) batch() int64 { return s.raw - s.lastRaw }

// file estimates the size of the file with all blocks.
func (s *batchSizes) file() int64 { return s.known + s.raw - s.knownRaw }

// batch holds blocks on their way to the file.
type batch struct {
	raw     []byte // uncompressed blocks, concatenated
	rawEnds []int
	seps    []byte // keys of their index entries, concatenated
	sepEnds []int
	out     []byte // stored blocks with trailers
	outEnds []int
	done    chan struct{}
}

// add records a block that ends at offset end of raw.
func (b *batch) add(end int, sep []byte) {
	b.rawEnds = append(b.rawEnds, end)
	b.seps = append(b.seps, sep...)
	b.sepEnds = append(b.sepEnds, len(b.seps))
}

// pack compresses the blocks.
func (b *batch) pack(f Format) {
	from := 0
	for _, end := range b.rawEnds {
		b.out = packBlock(b.out, b.raw[from:end], f, true)
		b.outEnds = append(b.outEnds, len(b.out))
		from = end
	}
}

// reset drops the blocks.
func (b *batch) reset() {
	b.rawEnds, b.seps, b.sepEnds, b.out, b.outEnds = b.rawEnds[:0], b.seps[:0], b.sepEnds[:0], b.out[:0], b.outEnds[:0]
}

// packBlock appends a stored block with its trailer:
//
//	+-------+-----------+--------------+
//	| block | codec (1) | checksum (4) |
//	+-------+-----------+--------------+
//
// It is compressed if that saves an eighth, as in the engines.
func packBlock(dst, raw []byte, f Format, compress bool) []byte {
	at, codec := len(dst), byte(codecNone)
	if compress {
		dst = growExact(dst, s2.MaxEncodedLen(len(raw))+blocks.TrailerLen)
		c := s2.EncodeSnappy(dst[at:cap(dst)], raw)
		if len(c) < len(raw)-len(raw)/8 {
			dst, codec = dst[:at+len(c)], codecSnappy
		}
	}
	if codec == codecNone {
		dst = append(growExact(dst, len(raw)+blocks.TrailerLen), raw...)
	}
	return appendTrailer(dst, at, codec, f)
}

// appendTrailer appends the trailer of the stored block that starts at offset at.
func appendTrailer(dst []byte, at int, codec byte, f Format) []byte {
	dst = append(dst, codec)
	return binary.LittleEndian.AppendUint32(dst, checksum(formats[f].checksum, dst[at:]))
}

// withCodec mixes the codec byte into the XXH3 of a block (ModifyChecksumForLastByte of table/format.cc).
func withCodec(h uint64, codec byte) uint32 { return uint32(h) ^ uint32(codec)*0x6b9083d9 }
