package columns

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/parquet/packed"
	"kvferry/record"
)

// decoder decompresses pages whose size is known to be right.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err) // an option is wrong
	}
	return z
})

// levels checks the definition levels of a page. Columns are not nested, so they are 0 or 1.
func (p *pages) levels(off int64, h *format.DataPageHeaderV2) error {
	n := int64(h.DefinitionLevelsByteLength)
	switch {
	case h.RepetitionLevelsByteLength != 0 || n < 0:
		return fmt.Errorf("levels of %s and %s bytes", record.Number(h.RepetitionLevelsByteLength), record.Number(n))
	case h.NumNulls < 0 || h.NumNulls > h.NumValues:
		return fmt.Errorf("%s nulls in %s rows", record.Number(h.NumNulls), record.Number(h.NumValues))
	case n == 0 && p.depth > 0 && h.NumValues > 0 || n > 0 && p.depth == 0:
		return fmt.Errorf("definition levels of %s bytes", record.Number(n))
	}
	b := make([]byte, n)
	if err := readAt(p.f.r, b, off); err != nil {
		return err
	}
	return packed.CheckRuns(b, 1, filled(int64(h.NumValues)))
}

// values checks the counts within a page's data, which the library allocates by.
func (p *pages) values(off, size, raw int64, plain bool, h *format.DataPageHeaderV2) error {
	n := int64(h.NumValues - h.NumNulls)
	switch h.Encoding {
	case format.Plain:
		return nil
	case format.RLEDictionary, format.DeltaBinaryPacked:
	default:
		return record.Unknown(record.NoOffset, "encoding", h.Encoding.String())
	}
	b := make([]byte, size)
	err := readAt(p.f.r, b, off)
	if err == nil && !plain {
		b, err = decompress(p.c.Codec, b, raw)
	}
	if err != nil || len(b) == 0 {
		return err
	}
	if h.Encoding == format.DeltaBinaryPacked {
		return p.delta(b, n)
	}
	return packed.CheckRuns(b[1:], int64(b[0]), filled(n))
}

// delta checks a page of differences.
func (p *pages) delta(b []byte, values int64) error {
	if parquet.Kind(p.c.Type) != parquet.Int64 {
		return record.Unknown(record.NoOffset, "encoding", "differences of "+p.c.Type.String())
	}
	return packed.CheckDifferences(b, values)
}

// filled returns the most values that the runs of some have: the last run is filled up to a multiple of 8.
func filled(values int64) int64 { return (values + 7) / 8 * 8 }

// oneFrame checks that a frame ends with the page: the library would decompress others after it.
func (p *pages) oneFrame(off, size int64, h *zstd.Header) error {
	at := int64(h.HeaderSize)
	for last := false; !last; {
		var b [4]byte
		if size-at < 3 {
			return record.ErrShort
		}
		if err := readAt(p.f.r, b[:3], off+at); err != nil {
			return err
		}
		block := binary.LittleEndian.Uint32(b[:])
		last = block&1 == 1
		if at += 3 + int64(block>>3); block>>1&3 == 1 { // one byte, repeated
			at += 1 - int64(block>>3)
		}
	}
	if h.HasCheckSum {
		at += 4
	}
	if at != size {
		return fmt.Errorf("a compressed frame of %s bytes in %s", record.Number(at), record.Number(size))
	}
	return nil
}
