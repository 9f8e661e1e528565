package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"kvferry/record"
)

const (
	headBytes = 512 // read to find a page's header
	maxHead   = 1 << 20
	// A page of another program is decompressed if it is not larger than that, or than so many times its bytes in the
	// file: zeros shrink to a thousandth.
	maxPage  = 64 << 20
	maxRatio = 1 << 10
	// The room of a page is kept for the next one if it is not larger. A page of zstd that needs no more is decompressed
	// without a first pass that counts its bytes.
	smallPage = 1 << 20
	safeRatio = 64
	maxWindow = 128 << 20
)

// header reads the header of the next page and returns its length.
func (r *Reader) header() (h format.PageHeader, length int64, err error) {
	end := min(r.end+dictionaryHead, r.f.end)
	for room := int64(headBytes); ; room *= 4 {
		r.head = slices.Grow(r.head[:0], int(room))
		b := r.head[:min(room, end-r.at)]
		if err := readAt(r.f.r, b, r.at); err != nil {
			return h, 0, err
		}
		n, err := unmarshal(b, &h)
		if errors.Is(err, record.ErrShort) && room < min(maxHead, end-r.at) {
			continue
		}
		if err != nil {
			return h, 0, err
		}
		size, raw := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
		if size < 0 || size > end-r.at-int64(n) || raw < 0 {
			err = fmt.Errorf("%s bytes, %s in all, %s are left: %w", record.Number(size), record.Number(raw),
				record.Number(end-r.at-int64(n)), record.ErrShort)
		}
		return h, int64(n), err
	}
}

// load reads the bytes of a page and compares their checksum, if it is not 0.
func (r *Reader) load(off int64, h *format.PageHeader) ([]byte, error) {
	b := slices.Grow(r.packed[:0], int(h.CompressedPageSize))[:h.CompressedPageSize]
	r.packed = nil
	if h.Type != format.DictionaryPage && len(b) <= smallPage { // a dictionary is used longer than the next page
		r.packed = b
	}
	if err := readAt(r.f.r, b, off); err != nil {
		return nil, err
	}
	if h.CRC != 0 && crc32.ChecksumIEEE(b) != uint32(h.CRC) {
		return nil, fmt.Errorf("checksum mismatch in a page of %s bytes", record.Number(len(b)))
	}
	return b, nil
}

// unpack decompresses b, which becomes raw bytes.
func (r *Reader) unpack(b []byte, raw int64, h *format.PageHeader) ([]byte, error) {
	codec := r.c.Meta.Codec
	if v2 := &h.DataPageHeaderV2; v2.Valid && v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
		codec = format.Uncompressed
	}
	packed := int64(len(b))
	if r.bounded && raw > max(maxPage, maxRatio*packed) || codec == format.Uncompressed && raw != packed {
		return nil, fmt.Errorf("%s bytes, decompressed %s", record.Number(packed), record.Number(raw))
	}
	out, err := decompress(codec, r.raw[:0], b, raw)
	if err != nil {
		return nil, err
	}
	if int64(len(out)) != raw {
		return nil, fmt.Errorf("%s bytes, want %s", record.Number(len(out)), record.Number(raw))
	}
	r.raw = nil
	if h.Type != format.DictionaryPage && codec != format.Uncompressed && len(out) <= smallPage {
		r.raw = out
	}
	return out, nil
}

// decoder decompresses pages to the room that they are said to need.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // an option is wrong
	}
	return z
})

// decompress decompresses b into dst, and at most one byte more than raw.
func decompress(codec format.CompressionCodec, dst, b []byte, raw int64) ([]byte, error) {
	var z io.Reader
	var err error
	switch codec {
	case format.Uncompressed:
		return b, nil
	case format.Snappy:
		if n, w := binary.Uvarint(b); w <= 0 || n != uint64(raw) || raw > max(smallPage, safeRatio*int64(len(b))) {
			return nil, fmt.Errorf("%s bytes of Snappy hold %s, want %s", record.Number(len(b)), record.Number(n),
				record.Number(raw))
		}
		return parquet.Snappy.Decode(dst[:cap(dst)], b)
	case format.Zstd:
		if raw > max(smallPage, safeRatio*int64(len(b))) {
			if err := count(b, raw); err != nil {
				return nil, err
			}
		}
		dst, err = decoder().DecodeAll(b, slices.Grow(dst, int(raw))[:0:raw])
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			err = fmt.Errorf("more than %s bytes", record.Number(raw))
		}
		return dst, err
	case format.Lz4Raw:
		dst = slices.Grow(dst, int(raw))[:raw]
		n, err := lz4.UncompressBlock(b, dst)
		return dst[:max(n, 0)], err
	case format.Gzip:
		z, err = gzip.NewReader(bytes.NewReader(b))
	case format.Brotli:
		z = brotli.NewReader(bytes.NewReader(b))
	default:
		err = record.Unknown(record.NoOffset, "codec", codec.String())
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, raw+1))
}

// count checks that b becomes raw bytes, without keeping them.
func count(b []byte, raw int64) error {
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(z, raw+1))
	if err == nil && n != raw {
		err = fmt.Errorf("%s bytes, want %s", record.Number(n), record.Number(raw))
	}
	return err
}
