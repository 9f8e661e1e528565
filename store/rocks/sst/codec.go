package sst

import (
	"bytes"
	"cmp"
	"compress/bzip2"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/zeebo/xxh3"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// RocksDB prefixes compressed blocks, except snappy, with their decompressed size:
//
//	compress format 2 (format_version 2 and later), and zstd always:  varint32
//	compress format 1 (format_version 0 and 1): none for zlib and bzip2; 8 bytes for LZ4, little endian
//
// LevelDB stores no size prefix.

// firstGuess bounds a decompressor's first allocation beyond what its input suggests. Without the bound a damaged size
// could demand memory that no data fills.
const firstGuess = 1 << 20

// firstRoom bounds the first buffer for an input of in bytes. With an unknown size (-1) a cursor keeps this buffer from
// then on. The guess for a known size, which is only a bound, would be 1 MiB per cursor for 4 KiB blocks; scans with
// fresh cursors took 15 times as long.
func firstRoom(in, size int) int {
	if size < 0 {
		return 4*in + 4<<10
	}
	return 8*in + firstGuess
}

var errSize = errors.New("decompressed size is impossible")

// Unpackers is a pool of decompressors; all of one pool use the same dictionary.
type Unpackers struct {
	pool sync.Pool
	Max  int64 // limit of a block's decompressed size; 0: DefaultMax
}

// DefaultMax is the default limit of a block's decompressed size: the longest value of a Redis server, 512 MiB, and
// room for the rest of the block.
const DefaultMax = 528 << 20

// maxWindow bounds the window of a zstd frame, because the decoder allocates it up front. The highest level uses 128
// MiB.
const maxWindow = 128 << 20

// max returns the limit of a block's decompressed size.
func (p *Unpackers) max() int { return int(min(cmp.Or(p.Max, DefaultMax), blocks.MaxSize)) }

// SizeError reports a block that decompresses to more than the limit.
type SizeError struct{ Max int }

// Error suggests the option that raises the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the block unpacks to more than %s bytes, as a forged one would; if the data may have values that large, raise --max-block",
		record.Number(e.Max))
}

// unpack decompresses src into dst, which may be reallocated. format is the compress format, 1 or 2.
func (p *Unpackers) unpack(dst []byte, codec byte, src []byte, format int, dict []byte) ([]byte, error) {
	if codec == codecSnappy {
		return unpackSnappy(dst, src, p.max())
	}
	u, _ := p.pool.Get().(*unpacker)
	if u == nil {
		u = new(unpacker)
	}
	defer p.pool.Put(u)
	u.max = p.max()
	return u.unpack(dst, codec, src, format, dict)
}

// unpacker decompresses blocks for one goroutine and reuses its decoders.
type unpacker struct {
	max     int
	inflate io.ReadCloser
	src     bytes.Reader
	zstd    *zstd.Decoder
}

func (u *unpacker) unpack(dst []byte, codec byte, src []byte, format int, dict []byte) ([]byte, error) {
	var unpack func(dst, src []byte, size int, dict []byte) ([]byte, error)
	fixed := false // the size has a fixed length
	switch codec {
	case codecLZ4, codecLZ4HC:
		fixed, unpack = true, unpackLZ4
	case codecZlib:
		unpack = u.unpackZlib
	case codecBzip2:
		unpack = u.unpackBzip2
	case codecZstdLevelDB:
		return u.unpackZstd(dst, src, -1, nil)
	case codecZstd, codecZstdNF:
		format, unpack = 2, u.unpackZstd
	default:
		return nil, base.Unsupported("codec %s", CodecName(codec))
	}
	size, src, err := sizePrefix(src, format, fixed, u.max)
	if err != nil {
		return nil, err
	}
	return unpack(dst, src, size, dict)
}

// codecNames returns the names of the codecs whose ids, in hex, precede the next semicolon; "none" for an empty list.
func codecNames(ids string) string {
	ids, _, _ = strings.Cut(ids, ";")
	b, err := hex.DecodeString(ids)
	if err != nil {
		return ""
	}
	if len(b) == 0 {
		return CodecName(codecNone)
	}
	var names []string
	for _, id := range b {
		names = append(names, CodecName(id))
	}
	return strings.Join(names, "+")
}

// UnpackValue decompresses a value of a blob file.
func (p *Unpackers) UnpackValue(dst []byte, codec byte, src []byte) ([]byte, error) {
	return p.unpack(dst, codec, src, 2, nil)
}

// CodecName returns the name of a codec for display.
func CodecName(codec byte) string {
	names := map[byte]string{codecNone: "none", codecSnappy: "snappy", codecZlib: "zlib", codecBzip2: "bzip2", codecLZ4: "lz4",
		codecLZ4HC: "lz4hc", codecXpress: "xpress", codecZstd: "zstd", codecZstdNF: "zstd", codecZstdLevelDB: "zstd"}
	if n, ok := names[codec]; ok {
		return n
	}
	return fmt.Sprintf("%d", codec)
}

// sizePrefix strips the decompressed size from a block; -1 if the format stores none.
func sizePrefix(src []byte, format int, fixed bool, most int) (int, []byte, error) {
	if format < 2 && !fixed {
		return -1, src, nil
	}
	var size uint64
	n := 8
	if format < 2 {
		if len(src) < n {
			return 0, nil, io.ErrUnexpectedEOF
		}
		size = uint64(binary.LittleEndian.Uint32(src))
	} else {
		size, n = binary.Uvarint(src)
	}
	if n <= 0 || size > blocks.MaxSize {
		return 0, nil, errSize
	}
	if size > uint64(most) {
		return 0, nil, &SizeError{most}
	}
	return int(size), src[n:], nil
}

// room returns dst with length n, reallocated if it is too small.
func room(dst []byte, n int) []byte {
	if cap(dst) < n {
		return slices.Grow([]byte(nil), n)[:n]
	}
	return dst[:n]
}

func unpackSnappy(dst, src []byte, most int) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	// Snappy's best case is a copy of 64 bytes encoded in 3.
	if n > 22*len(src)+64 || n > blocks.MaxSize {
		return nil, errSize
	}
	if n > most {
		return nil, &SizeError{most}
	}
	return s2.Decode(room(dst, n), src)
}

func unpackLZ4(dst, src []byte, size int, dict []byte) ([]byte, error) {
	if size == 0 && len(src) == 1 && src[0] == 0 {
		return dst[:0], nil // an empty value of a blob file; the decoder rejects an empty buffer
	}
	if size == 0 || size > 255*len(src)+64 {
		return nil, errSize
	}
	dst = room(dst, size)
	n, err := lz4.UncompressBlockWithDict(src, dst, dict)
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, fmt.Errorf("decompressed to %s bytes, want %s", record.Number(n), record.Number(size))
	}
	return dst, nil
}

func (u *unpacker) unpackZlib(dst, src []byte, size int, dict []byte) ([]byte, error) {
	u.src.Reset(src)
	if u.inflate == nil {
		u.inflate = flate.NewReaderDict(&u.src, dict)
	} else if err := u.inflate.(flate.Resetter).Reset(&u.src, dict); err != nil {
		return nil, err
	}
	return readGrowing(dst, u.inflate, size, len(src), u.max)
}

func (u *unpacker) unpackBzip2(dst, src []byte, size int, _ []byte) ([]byte, error) {
	u.src.Reset(src)
	return readGrowing(dst, bzip2.NewReader(&u.src), size, len(src), u.max)
}

// readGrowing reads all of r, at most most bytes, growing the buffer with the data. size is expected, -1 if unknown.
func readGrowing(dst []byte, r io.Reader, size, in, most int) ([]byte, error) {
	guess := firstRoom(in, size)
	if size >= 0 && size < guess {
		guess = size + 1 // one more byte, to detect the end
	}
	if cap(dst) < guess {
		dst = make([]byte, guess)
	}
	dst = dst[:0]
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, len(dst)+1)
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst) > most {
			return nil, &SizeError{most}
		}
		if size >= 0 && len(dst) > size {
			return nil, fmt.Errorf("decompressed to more than %s bytes", record.Number(size))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(dst) < size {
		return nil, fmt.Errorf("decompressed to %s bytes, want %s", record.Number(len(dst)), record.Number(size))
	}
	return dst, nil
}

// unpackZstd decompresses frames; size is -1 for LevelDB, whose blocks rely on the frame's own size.
func (u *unpacker) unpackZstd(dst, src []byte, size int, dict []byte) ([]byte, error) {
	if err := u.openZstd(dict); err != nil {
		return nil, err
	}
	limit := size
	if limit < 0 {
		limit = u.max
	}
	if guess := min(limit, firstRoom(len(src), size)); cap(dst) < guess {
		dst = make([]byte, guess)
	}
	out, err := u.zstd.DecodeAll(src, dst[:0])
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) && cap(dst) < limit:
		return u.streamZstd(dst, src, size)
	case err != nil:
		return nil, err
	case size >= 0 && len(out) != size:
		return nil, fmt.Errorf("decompressed to %s bytes, want %s", record.Number(len(out)), record.Number(size))
	}
	return out, nil
}

// streamZstd decompresses output larger than dst. The buffer grows as it fills, whichever sizes the frame claims.
func (u *unpacker) streamZstd(dst, src []byte, size int) ([]byte, error) {
	u.src.Reset(src)
	if err := u.zstd.Reset(&u.src); err != nil {
		return nil, err
	}
	defer u.zstd.Reset(nil) // otherwise the next DecodeAll waits for the end of this stream
	return readGrowing(dst, u.zstd, size, len(src), u.max)
}

// openZstd creates the decoder. It needs no Close: with a concurrency of 1 it has no goroutines.
func (u *unpacker) openZstd(dict []byte) error {
	if u.zstd != nil {
		return nil
	}
	opts := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(blocks.MaxSize), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true)}
	if len(dict) >= 4 && binary.LittleEndian.Uint32(dict) == zstdDictMagic {
		opts = append(opts, zstd.WithDecoderDicts(dict))
	} else if len(dict) > 0 {
		opts = append(opts, zstd.WithDecoderDictRaw(0, dict))
	}
	d, err := zstd.NewReader(nil, opts...)
	if err != nil {
		return fmt.Errorf("compression dictionary: %w", err)
	}
	u.zstd = d
	return nil
}

// zstdDictMagic is the first word of a trained dictionary; others are raw content.
const zstdDictMagic = 0xEC30A437

// codecZstdLevelDB is our own id for LevelDB's zstd, whose blocks have no size prefix.
const codecZstdLevelDB = 0xff

// checksum returns the checksum of a block and its codec byte.
func checksum(kind byte, b []byte) uint32 {
	switch n := len(b) - 1; kind {
	case checksumXXH32:
		return base.XXH32(b)
	case checksumXXH64:
		return uint32(xxhash.Sum64(b))
	case checksumXXH3:
		return withCodec(xxh3.Hash(b[:n]), b[n])
	}
	return base.MaskCRC(crc32.Checksum(b, base.Castagnoli))
}

// checkBlock verifies the checksum of a block and its codec byte.
func checkBlock(kind byte, b []byte, stored uint32) error {
	if kind == checksumNone {
		return nil
	}
	if sum := checksum(kind, b); sum != stored {
		return fmt.Errorf("%w: stored %08x, computed %08x", base.ErrChecksum, stored, sum)
	}
	return nil
}
