package sst

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
	"github.com/zeebo/xxh3"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// A batch is what is compressed at one go: so many blocks, or the first ones that reach so many bytes.
const (
	batchBlocks = 16
	batchBytes  = 256 << 10
)

// batchSizes is what batches take. Tables end where it says, so it must not depend on who compresses, and when: the
// batch before the one being built counts as it was built until that one ends.
type batchSizes struct {
	raw     int64 // bytes of all blocks
	lastRaw int64 // raw at the end of the last batch
	stored  int64 // bytes of the batches that are in the file
	// known and knownRaw are stored and raw at the end of the batch before the last.
	known, knownRaw int64
}

// end ends a batch when all before it are in the file.
func (s *batchSizes) end() {
	s.known, s.knownRaw = s.stored, s.lastRaw
	s.lastRaw = s.raw
}

// settle notes a block that is in the file, and all before it.
func (s *batchSizes) settle(raw, stored int64) {
	s.raw += raw
	s.lastRaw, s.knownRaw = s.raw, s.raw
	s.stored, s.known = stored, stored
}

// batch is how large the batch being built is.
func (s *batchSizes) batch() int64 { return s.raw - s.lastRaw }

// file is about how large the file would be with all blocks.
func (s *batchSizes) file() int64 { return s.known + s.raw - s.knownRaw }

// batch is blocks on their way into the file.
type batch struct {
	raw     []byte // blocks as they were built, side by side
	rawEnds []int
	seps    []byte // keys of their index entries, side by side
	sepEnds []int
	out     []byte // blocks as they are stored, with their trailers
	outEnds []int
	done    chan struct{}
}

// add notes a block that ends at end of what will be raw.
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

// reset forgets the blocks.
func (b *batch) reset() {
	b.rawEnds, b.seps, b.sepEnds, b.out, b.outEnds = b.rawEnds[:0], b.seps[:0], b.sepEnds[:0], b.out[:0], b.outEnds[:0]
}

// packBlock appends a block as it is stored, with its trailer:
//
//	+-------+-----------+--------------+
//	| block | codec (1) | checksum (4) |
//	+-------+-----------+--------------+
//
// It is compressed when that saves an eighth, as the engines do.
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

// appendTrailer ends a stored block that starts at at.
func appendTrailer(dst []byte, at int, codec byte, f Format) []byte {
	dst = append(dst, codec)
	return binary.LittleEndian.AppendUint32(dst, f.checksum(dst[at:]))
}

// checksum is that of a block with its codec.
func (f Format) checksum(b []byte) uint32 {
	if f == RocksDB5 {
		n := len(b) - 1
		return withCodec(xxh3.Hash(b[:n]), b[n])
	}
	return base.MaskCRC(crc32.Checksum(b, base.Castagnoli))
}

// withCodec adds the codec to the XXH3 of a block.
func withCodec(h uint64, codec byte) uint32 { return uint32(h) ^ uint32(codec)*0x6b9083d9 }
