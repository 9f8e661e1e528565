package logfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"kvferry/store/rocks/base"
)

// Compressed logs (wal_compression, RocksDB 7.4 and later) start with a fragment of type 9, whose payload is the id of
// a codec in 4 bytes. Every record that follows is a zstd frame, which is cut into fragments like any record.
const (
	codecNone = 0
	codecZstd = 7

	// maxWindow bounds the window of a frame: RocksDB compresses at the default level, which takes 2 MiB.
	maxWindow = 8 << 20
	// maxBatch bounds a record: write batches are below 4 GiB.
	maxBatch = 1 << 32
	// maxRecord bounds a record that is returned in memory, if Huge does not.
	maxRecord = 1 << 31
)

// ErrPacked means that a record cannot be decompressed; the next record can be read.
var ErrPacked = errors.New("cannot be decompressed")

// setCodec decodes the fragment with the codec of all records of the log.
func (l *Reader) setCodec(payload []byte) error {
	if l.codec != codecNone || l.records {
		return errors.New("compression is announced within the log")
	}
	if len(payload) != 4 {
		return fmt.Errorf("codec in %d bytes, want 4", len(payload))
	}
	codec := binary.LittleEndian.Uint32(payload)
	if codec != codecNone && codec != codecZstd {
		return base.Unsupported("log compressed with codec %d", codec)
	}
	l.codec = codec
	return nil
}

// options are for decoders without goroutines, which need no closing.
var options = []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
	zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxRecord), zstd.WithDecoderLowmem(true)}

// unpack decompresses a record whose first fragment is at off. One that is larger than Huge is only measured.
func (l *Reader) unpack(packed []byte, off int64) ([]byte, error) {
	if l.codec == codecNone {
		return packed, nil
	}
	if l.zstd == nil {
		var err error
		if l.zstd, err = zstd.NewReader(nil, options...); err != nil {
			return nil, err
		}
	}
	if l.Skipped {
		return nil, l.measure(off)
	}
	limit := maxRecord
	if l.Huge > 0 {
		limit = l.Huge
	}
	out, err := l.plainRecord(packed, limit)
	switch {
	case errors.Is(err, errLarge) && l.Huge > 0:
		l.Skipped = true
		return nil, l.measure(off)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrPacked, err)
	}
	l.Size = int64(len(out))
	return out, nil
}

var errLarge = errors.New("larger than the limit")

// plainRecord decompresses a record of up to limit bytes. It does not trust the length in the frame header: the buffer
// grows with the data.
func (l *Reader) plainRecord(packed []byte, limit int) ([]byte, error) {
	if room := min(limit, 4*len(packed)+1<<10); cap(l.plain) < room {
		l.plain = make([]byte, 0, room)
	}
	out, err := l.zstd.DecodeAll(packed, l.plain[:0:min(cap(l.plain), limit)])
	if !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return out, err
	}
	if err := l.zstd.Reset(bytes.NewReader(packed)); err != nil {
		return nil, err
	}
	defer l.zstd.Reset(nil) // or the next DecodeAll waits for the end of this stream
	for out = l.plain[:0]; ; {
		if len(out) == cap(out) {
			out = slices.Grow(out, len(out))
			l.plain = out
		}
		n, err := l.zstd.Read(out[len(out):cap(out)])
		if out = out[:len(out)+n]; len(out) > limit {
			return nil, errLarge
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// measure determines the size of a record that is not kept in memory.
func (l *Reader) measure(off int64) error {
	r, err := l.Body(off)
	if err != nil {
		return err
	}
	switch l.Size, err = io.CopyN(io.Discard, r, maxBatch+1); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("%w: to no more than %d bytes", ErrPacked, int64(maxBatch))
	}
	return fmt.Errorf("%w: %w", ErrPacked, err)
}
