package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
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
	maxPageValues = maxGroupRows
)

// CheckColumn checks the pages of a column in a row group. The library allocates by the numbers in their headers and data, so
// they must not promise more than the file holds. It reports whether all values are null.
func (f *File) CheckColumn(group, leaf int) (null bool, err error) {
	return f.checkColumn(group, leaf, false)
}

func (f *File) checkColumn(group, leaf int, foreign bool) (null bool, err error) {
	g := &f.Metadata().RowGroups[group]
	c := &g.Columns[leaf].MetaData
	p := pages{f: f, c: c, left: c.NumValues, foreign: foreign}
	if col, ok := f.Schema().Lookup(f.Schema().Columns()[leaf]...); ok {
		p.depth, p.typ = col.MaxDefinitionLevel, col.Node.Type()
		if is := parquet.Kind(c.Type); is != p.typ.Kind() {
			return false, corrupt(firstPage(c), "column "+f.name(leaf), fmt.Errorf("pages of %s, want %s", is, p.typ.Kind()))
		}
	}
	if c.NumValues != g.NumRows {
		return false, corrupt(firstPage(c), "column "+f.name(leaf), fmt.Errorf("%s values in %s rows", record.Number(c.NumValues), record.Number(g.NumRows)))
	}
	off, data := firstPage(c), false
	for end := off + c.TotalCompressedSize; off < end; {
		data = data || off == c.DataPageOffset
		size, err := p.page(off, end)
		if err != nil {
			return false, corrupt(off, "page of "+f.name(leaf), err)
		}
		off += size
	}
	if p.left != 0 {
		return false, corrupt(off, "column "+f.name(leaf), fmt.Errorf("%s values are missing", record.Number(p.left)))
	}
	if !data && c.NumValues > 0 {
		return false, corrupt(off, "column "+f.name(leaf), fmt.Errorf("no page begins at %d", c.DataPageOffset))
	}
	return p.nulls == c.NumValues, nil
}

// starts returns where pages begin.
func (f *File) starts(c *format.ColumnMetaData) (out map[int64]bool, err error) {
	p, out := pages{f: f, c: c}, map[int64]bool{}
	off := firstPage(c)
	for end := off + c.TotalCompressedSize; off < end; {
		h, n, err := p.header(off, end)
		if err != nil {
			return nil, err
		}
		out[off] = true
		off += n + max(int64(h.CompressedPageSize), 0)
	}
	return out, nil
}

func (f *File) name(leaf int) string { return strings.Join(f.Schema().Columns()[leaf], ".") }

// pages walks over the headers of a column's pages.
type pages struct {
	f     *File
	c     *format.ColumnMetaData
	left  int64 // values
	nulls int64
	head  []byte

	depth   int // the definition level of a value
	typ     parquet.Type
	foreign bool   // of another program
	cells   *Cells // take what a page of another program holds; nil: pages are only checked
}

// page checks the page at an offset and returns its size.
func (p *pages) page(off, end int64) (int64, error) {
	h, n, err := p.header(off, end)
	if err != nil {
		return 0, err
	}
	packed, raw := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	if packed < 0 || packed > end-off-n || raw < 0 {
		return 0, fmt.Errorf("%s bytes, %s in all, %s are left: %w", record.Number(packed), record.Number(raw), record.Number(end-off-n), record.ErrShort)
	}
	plain := p.c.Codec == format.Uncompressed
	if p.foreign {
		if err := p.checkSum(off+n, packed, h.CRC); err != nil {
			return 0, err
		}
	}
	switch {
	case p.foreign && h.Type == format.DataPage && h.DataPageHeader.Valid:
		return n + packed, p.foreignV1(off+n, packed, raw, &h.DataPageHeader.V)
	case p.foreign && h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		return n + packed, p.foreignV2(off+n, packed, raw, &h.DataPageHeaderV2.V)
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		return n + packed, p.data(off+n, packed, raw, plain, &h.DataPageHeaderV2.V)
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		d := &h.DictionaryPageHeader.V
		if v := int64(d.NumValues); v < 0 || v > raw {
			return 0, fmt.Errorf("%s values in a dictionary of %s bytes", record.Number(v), record.Number(raw))
		}
		if d.Encoding != format.Plain && !(p.foreign && d.Encoding == plainDictionary) {
			return 0, record.Unknown(record.NoOffset, "encoding", d.Encoding.String())
		}
		if p.foreign {
			b, err := p.unpack(off+n, packed, raw, plain)
			if err == nil && p.cells != nil {
				err = p.cells.dictionary(b, int(d.NumValues))
			}
			return n + packed, err
		}
		return n + packed, p.size(off+n, packed, raw, plain)
	}
	return 0, record.Unknown(record.NoOffset, "page", h.Type.String()) // those of version 1 hide their levels
}

// checkSum compares the checksum of a page; 0 means that it has none.
func (p *pages) checkSum(off, packed int64, want int32) error {
	if want == 0 {
		return nil
	}
	h := crc32.NewIEEE()
	if _, err := io.CopyBuffer(h, io.NewSectionReader(p.f.r, off, packed), make([]byte, bufferBytes)); err != nil {
		return err
	}
	if h.Sum32() != uint32(want) {
		return fmt.Errorf("checksum mismatch in a page of %s bytes", record.Number(packed))
	}
	return nil
}

// data checks a page of values.
func (p *pages) data(off, packed, raw int64, plain bool, h *format.DataPageHeaderV2) error {
	if values := int64(h.NumValues); values < 0 || values > min(p.left, maxPageValues) {
		return fmt.Errorf("%s values, %s are left", record.Number(values), record.Number(p.left))
	}
	p.left -= int64(h.NumValues)
	p.nulls += int64(h.NumNulls)
	levels := int64(h.DefinitionLevelsByteLength)
	if levels > min(packed, raw) {
		return record.ErrShort
	}
	plain = plain || h.IsCompressed.Valid && !h.IsCompressed.V
	err := p.levels(off, h)
	if err == nil {
		err = p.size(off+levels, packed-levels, raw-levels, plain)
	}
	if err == nil {
		err = p.values(off+levels, packed-levels, raw-levels, plain, h)
	}
	return err
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
			return fmt.Errorf("%s bytes, want %s", record.Number(packed), record.Number(raw))
		}
		return nil
	}
	if p.c.Codec != format.Zstd && p.c.Codec != format.Snappy {
		return record.Unknown(record.NoOffset, "codec", p.c.Codec.String())
	}
	b := make([]byte, min(packed, zstd.HeaderMaxSize))
	if err := readAt(p.f.r, b, off); err != nil {
		return err
	}
	if p.c.Codec == format.Snappy {
		if n, w := binary.Uvarint(b); w <= 0 || n != uint64(raw) || raw > max(smallPage, safeRatio*packed) {
			return fmt.Errorf("%s bytes of Snappy hold %s, want %s", record.Number(packed), record.Number(n), record.Number(raw))
		}
		return nil
	}
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return err
	}
	if h.HasFCS && !h.Skippable && h.FrameContentSize != uint64(raw) {
		return fmt.Errorf("%s bytes, want %s", record.Number(h.FrameContentSize), record.Number(raw))
	}
	if h.HasFCS && !h.Skippable && raw <= max(smallPage, safeRatio*packed) {
		return p.oneFrame(off, packed, &h)
	}
	z, err := zstd.NewReader(io.NewSectionReader(p.f.r, off, packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
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
