package sst

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
	"github.com/zeebo/xxh3"
)

// A batch is what is compressed at one go: so many blocks, or the first ones that reach so many bytes.
const (
	batchBlocks = 16
	batchBytes  = 256 << 10
)

// Spare is the time of cores that have nothing else to do. Writers that share it compress blocks there.
type Spare struct{ slots chan struct{} }

// NewSpare returns the time of so many cores, which may be none: tables then end where they would with some.
func NewSpare(cores int) *Spare { return &Spare{make(chan struct{}, cores)} }

// run calls f beside the caller, when a core is free.
func (s *Spare) run(f func()) bool {
	select {
	case s.slots <- struct{}{}:
	default:
		return false
	}
	go func() {
		f()
		<-s.slots
	}()
	return true
}

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
	b.rawEnds, b.seps, b.sepEnds, b.out, b.outEnds = b.rawEnds[:0], b.seps[:0], b.sepEnds[:0], keepSmall(b.out), b.outEnds[:0]
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
		dst = growExact(dst, s2.MaxEncodedLen(len(raw))+blockTrailer)
		c := s2.EncodeSnappy(dst[at:cap(dst)], raw)
		if len(c) < len(raw)-len(raw)/8 {
			dst, codec = dst[:at+len(c)], codecSnappy
		}
	}
	if codec == codecNone {
		dst = append(growExact(dst, len(raw)+blockTrailer), raw...)
	}
	dst = append(dst, codec)
	return binary.LittleEndian.AppendUint32(dst, f.checksum(dst[at:]))
}

// checksum is that of a block with its codec.
func (f Format) checksum(b []byte) uint32 {
	if f == RocksDB5 {
		n := len(b) - 1
		return uint32(xxh3.Hash(b[:n])) ^ uint32(b[n])*0x6b9083d9
	}
	return maskCRC(crc32.Checksum(b, crcTable))
}
