package columns

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

const (
	headBytes = 512 // read to find a page's header
	maxHead   = 1 << 20
	// A page is decompressed without a look at it if that takes so little memory.
	smallPage = 1 << 20
	safeRatio = 64
	maxWindow = 128 << 20
	// maxPageValues bounds the values of a page: a run of equal ones takes few bytes.
	maxPageValues = 1 << 24
)

// CheckColumn checks the page headers of a column in a row group. The library allocates by the numbers in them, so they must not
// promise more than the file holds. It reports whether all values are null.
func (f *File) CheckColumn(group, leaf int) (null bool, err error) {
	g := &f.Metadata().RowGroups[group]
	c := &g.Columns[leaf].MetaData
	p := pages{f: f, c: c, left: c.NumValues}
	if c.NumValues != g.NumRows {
		return false, corrupt(firstPage(c), "column "+f.name(leaf), fmt.Errorf("%d values in %d rows", c.NumValues, g.NumRows))
	}
	off := firstPage(c)
	for end := off + c.TotalCompressedSize; off < end; {
		size, err := p.page(off, end)
		if err != nil {
			return false, corrupt(off, "page of "+f.name(leaf), err)
		}
		off += size
	}
	if p.left != 0 {
		return false, corrupt(off, "column "+f.name(leaf), fmt.Errorf("%d values are missing", p.left))
	}
	return p.nulls == c.NumValues, nil
}

func (f *File) name(leaf int) string { return f.Schema().Columns()[leaf][0] }

// pages walks over the headers of a column's pages.
type pages struct {
	f     *File
	c     *format.ColumnMetaData
	left  int64 // values
	nulls int64
	head  []byte
}

// page checks the page at an offset and returns its size.
func (p *pages) page(off, end int64) (int64, error) {
	h, n, err := p.header(off, end)
	if err != nil {
		return 0, err
	}
	packed, raw := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	if packed < 0 || packed > end-off-n || raw < 0 {
		return 0, fmt.Errorf("%d bytes, %d in all, %d are left: %w", packed, raw, end-off-n, record.ErrShort)
	}
	levels, plain := int64(0), p.c.Codec == format.Uncompressed
	values := int64(-1)
	switch {
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		values = int64(h.DataPageHeader.V.NumValues)
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		v := &h.DataPageHeaderV2.V
		levels = int64(v.DefinitionLevelsByteLength) + int64(v.RepetitionLevelsByteLength)
		if levels < 0 || levels > packed || levels > raw {
			return 0, record.ErrShort
		}
		plain = plain || v.IsCompressed.Valid && !v.IsCompressed.V
		values = int64(v.NumValues)
		p.nulls += int64(v.NumNulls)
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		if v := int64(h.DictionaryPageHeader.V.NumValues); v < 0 || v > raw {
			return 0, fmt.Errorf("%d values in a dictionary of %d bytes", v, raw)
		}
		return n + packed, p.size(off+n, packed, raw, plain)
	}
	if values < 0 || values > min(p.left, maxPageValues) {
		return 0, fmt.Errorf("%s of %d values, %d are left", h.Type, values, p.left)
	}
	p.left -= values
	return n + packed, p.size(off+n+levels, packed-levels, raw-levels, plain)
}

// header reads the header of a page and returns its length.
func (p *pages) header(off, end int64) (h format.PageHeader, length int64, err error) {
	for room := int64(headBytes); ; room *= 4 {
		if int64(cap(p.head)) < room {
			p.head = make([]byte, room)
		}
		b := p.head[:min(room, end-off)]
		if err := readAt(p.f.r, b, off); err != nil {
			return h, 0, err
		}
		n, err := checkStruct(b)
		if errors.Is(err, record.ErrShort) && room < min(maxHead, end-off) {
			continue
		}
		if err == nil {
			err = guard(func() error { return thrift.Unmarshal(new(thrift.CompactProtocol), b[:n], &h) })
		}
		return h, int64(n), err
	}
}

// size checks that packed bytes at an offset become raw bytes, if that is unlikely or not written in them.
func (p *pages) size(off, packed, raw int64, plain bool) error {
	if plain {
		if packed != raw {
			return fmt.Errorf("%d bytes, want %d", packed, raw)
		}
		return nil
	}
	if p.c.Codec != format.Zstd {
		return record.Unknown(record.NoOffset, "codec", p.c.Codec.String())
	}
	b := make([]byte, min(packed, zstd.HeaderMaxSize))
	if err := readAt(p.f.r, b, off); err != nil {
		return err
	}
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return err
	}
	if h.HasFCS && !h.Skippable && h.FrameContentSize != uint64(raw) {
		return fmt.Errorf("%d bytes, want %d", h.FrameContentSize, raw)
	}
	if h.HasFCS && !h.Skippable && raw <= max(smallPage, safeRatio*packed) {
		return nil
	}
	z, err := zstd.NewReader(io.NewSectionReader(p.f.r, off, packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(z, raw+1))
	if err == nil && n != raw {
		err = fmt.Errorf("%d bytes, want %d", n, raw)
	}
	return err
}
