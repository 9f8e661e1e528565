package sst

import (
	"bytes"
	"cmp"
	"compress/bzip2"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Compressed blocks of RocksDB, but for snappy, start with the size they decompress to:
//
//	compress format 2 (format_version 2 and later), and zstd always:  varint32
//	compress format 1 (format_version 0 and 1): none for zlib and bzip2; 8 bytes for LZ4, little endian
//
// LevelDB's blocks have no such size.

// firstGuess is how much room a decompressor starts with beyond what its input suggests, so that a
// damaged size cannot ask for memory that nothing fills.
const firstGuess = 1 << 20

// firstRoom is how much room is made at most before anything is decompressed of in bytes. When their decompressed size is
// not known, -1, this is what a cursor holds from then on: with the same guess as for a known size, which is only a bound,
// that was 1 MiB a cursor for blocks of 4 KiB, and scans of fresh cursors took 15 times as long.
func firstRoom(in, size int) int {
	if size < 0 {
		return 4*in + 4<<10
	}
	return 8*in + firstGuess
}

var errSize = errors.New("decompressed size is impossible")

// Unpackers lends unpackers to goroutines; all of one pool use the same dictionary.
type Unpackers struct {
	pool sync.Pool
	Max  int64 // what a block may unpack to; 0: DefaultMax
}

// DefaultMax is what a block may unpack to: the longest value of a Redis server, 512 MiB, and what stands beside it.
const DefaultMax = 528 << 20

// maxWindow bounds how far back a zstd frame may refer, for that much memory is taken before anything is unpacked: the
// highest level of all looks back 128 MiB.
const maxWindow = 128 << 20

// max returns what a block may unpack to.
func (p *Unpackers) max() int { return int(min(cmp.Or(p.Max, DefaultMax), blocks.MaxSize)) }

// SizeError means that a block unpacks to more than is allowed.
type SizeError struct{ Max int }

// Error says what helps.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the block unpacks to more than %d bytes, as a forged one would; if the data may have values that large, raise --max-block", e.Max)
}

// unpack decompresses src into dst's room, which may move. format is the compress format, 1 or 2.
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

// unpacker decompresses blocks for one goroutine, keeping what can be reused.
type unpacker struct {
	max     int
	inflate io.ReadCloser
	src     bytes.Reader
	zstd    *zstd.Decoder
}

func (u *unpacker) unpack(dst []byte, codec byte, src []byte, format int, dict []byte) ([]byte, error) {
	switch codec {
	case codecLZ4, codecLZ4HC:
		size, src, err := sizePrefix(src, format, true, u.max)
		if err != nil {
			return nil, err
		}
		return unpackLZ4(dst, src, size, dict)
	case codecZlib:
		size, src, err := sizePrefix(src, format, false, u.max)
		if err != nil {
			return nil, err
		}
		return u.unpackZlib(dst, src, size, dict)
	case codecBzip2:
		size, src, err := sizePrefix(src, format, false, u.max)
		if err != nil {
			return nil, err
		}
		u.src.Reset(src)
		return readGrowing(dst, bzip2.NewReader(&u.src), size, len(src), u.max)
	case codecZstdLevelDB:
		return u.unpackZstd(dst, src, -1, nil)
	case codecZstd, codecZstdNF:
		size, src, err := sizePrefix(src, 2, false, u.max)
		if err != nil {
			return nil, err
		}
		return u.unpackZstd(dst, src, size, dict)
	}
	return nil, base.Unsupported("codec %s", CodecName(codec))
}

// codecNames names the codecs of the hex digits before the next semicolon; "none" when there are none.
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

// CodecName names a codec for people.
func CodecName(codec byte) string {
	names := map[byte]string{codecNone: "none", codecSnappy: "snappy", codecZlib: "zlib", codecBzip2: "bzip2", codecLZ4: "lz4",
		codecLZ4HC: "lz4hc", codecXpress: "xpress", codecZstd: "zstd", codecZstdNF: "zstd", codecZstdLevelDB: "zstd"}
	if n, ok := names[codec]; ok {
		return n
	}
	return fmt.Sprintf("%d", codec)
}

// sizePrefix takes the decompressed size off a block, -1 when the format stores none.
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

// room returns dst with length n, growing it when it is too small.
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
	// The best that snappy does is a copy of 64 bytes in 3.
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
		return dst[:0], nil // no block of a table is empty, but a value of a blob file may be; the decoder takes no empty room
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
		return nil, fmt.Errorf("decompressed to %d bytes, want %d", n, size)
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

// readGrowing reads all of r, at most most bytes, room growing with what comes. size is what must come, -1 unknown.
func readGrowing(dst []byte, r io.Reader, size, in, most int) ([]byte, error) {
	guess := firstRoom(in, size)
	if size >= 0 && size < guess {
		guess = size + 1 // one byte more shows that nothing follows
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
			return nil, fmt.Errorf("decompressed to more than %d bytes", size)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(dst) < size {
		return nil, fmt.Errorf("decompressed to %d bytes, want %d", len(dst), size)
	}
	return dst, nil
}

// unpackZstd decompresses frames; size is -1 for LevelDB, whose blocks rely on the frame's own.
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
		return nil, fmt.Errorf("decompressed to %d bytes, want %d", len(out), size)
	}
	return out, nil
}

// streamZstd decompresses what is larger than the room there is: more is made as it fills, whatever sizes are claimed.
func (u *unpacker) streamZstd(dst, src []byte, size int) ([]byte, error) {
	u.src.Reset(src)
	if err := u.zstd.Reset(&u.src); err != nil {
		return nil, err
	}
	defer u.zstd.Reset(nil) // or the next DecodeAll waits for the end of this stream
	return readGrowing(dst, u.zstd, size, len(src), u.max)
}

// openZstd makes the decoder, which needs no closing: with a concurrency of 1 it has no goroutines.
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

// zstdDictMagic starts a trained dictionary; others are raw content.
const zstdDictMagic = 0xEC30A437

// codecZstdLevelDB is our id of LevelDB's zstd, whose blocks have no size prefix.
const codecZstdLevelDB = 0xff
