package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

const (
	// A page of another program is decompressed before the library sees it, if it is not larger than that, or
	// than so many times its bytes in the file: zeros shrink to a thousandth.
	maxForeignPage  = 64 << 20
	maxForeignRatio = 1 << 10
	// Writers end a page of nulls with its row group.
	maxForeignValues = 1 << 22
	// DuckDB fills runs up to 256 values.
	foreignFill = 255
	// plainDictionary is what old writers call both the values of a dictionary and their numbers in pages.
	plainDictionary format.Encoding = 2
)

// CheckForeign is CheckColumn for a file of any program: with pages of version 1, other codecs and other encodings.
func (f *File) CheckForeign(group int, l *Leaf) error {
	_, err := f.checkColumn(group, l.index, true)
	return err
}

// foreignV1 checks a page whose levels are compressed with its values.
func (p *pages) foreignV1(off, packed, raw int64, h *format.DataPageHeader) error {
	n := int64(h.NumValues)
	if err := p.count(n); err != nil {
		return err
	}
	b, err := p.unpack(off, packed, raw, p.c.Codec == format.Uncompressed)
	if err != nil || p.depth == 0 {
		return errors.Join(err, p.foreignValues(b, n, h.Encoding))
	}
	if h.DefinitionLevelEncoding != format.RLE {
		return record.Unknown(record.NoOffset, "levels", h.DefinitionLevelEncoding.String())
	}
	levels, b, err := sized(b)
	if err == nil {
		err = checkRuns(levels, int64(bits.Len(uint(p.depth))), n+foreignFill)
	}
	if err == nil {
		err = p.foreignValues(b, n, h.Encoding)
	}
	return err
}

// foreignV2 checks a page whose levels come before its values.
func (p *pages) foreignV2(off, packed, raw int64, h *format.DataPageHeaderV2) error {
	n, levels := int64(h.NumValues), int64(h.DefinitionLevelsByteLength)
	if err := p.count(n); err != nil {
		return err
	}
	if h.RepetitionLevelsByteLength != 0 || levels < 0 || levels > min(packed, raw) || h.NumNulls < 0 || h.NumNulls > h.NumValues {
		return fmt.Errorf("levels of %s and %s bytes, %s nulls", record.Number(h.RepetitionLevelsByteLength), record.Number(levels), record.Number(h.NumNulls))
	}
	b := make([]byte, levels)
	err := readAt(p.f.r, b, off)
	if err == nil {
		err = checkRuns(b, int64(bits.Len(uint(p.depth))), n+foreignFill)
	}
	if err != nil || packed == levels {
		return err
	}
	plain := p.c.Codec == format.Uncompressed || h.IsCompressed.Valid && !h.IsCompressed.V
	if b, err = p.unpack(off+levels, packed-levels, raw-levels, plain); err == nil {
		err = p.foreignValues(b, n, h.Encoding)
	}
	return err
}

// count takes the values of a page from those that are left.
func (p *pages) count(n int64) error {
	if n < 0 || n > min(p.left, maxForeignValues) {
		return fmt.Errorf("%s values, %s are left", record.Number(n), record.Number(p.left))
	}
	p.left -= n
	return nil
}

// unpack decompresses a page. The library would allocate whatever its bytes say.
func (p *pages) unpack(off, packed, raw int64, plain bool) ([]byte, error) {
	if raw > max(maxForeignPage, maxForeignRatio*packed) || plain && raw != packed {
		return nil, fmt.Errorf("%s bytes, decompressed %d", record.Number(packed), raw)
	}
	if p.c.Codec == format.Zstd && !plain {
		if err := p.size(off, packed, raw, false); err != nil {
			return nil, err
		}
	}
	b := make([]byte, packed)
	if err := readAt(p.f.r, b, off); err != nil || plain {
		return b, err
	}
	out, err := decompress(p.c.Codec, b, raw)
	if err == nil && int64(len(out)) != raw {
		err = fmt.Errorf("%s bytes, want %s", record.Number(len(out)), record.Number(raw))
	}
	return out, err
}

// decompress decompresses b, and at most one byte more than raw.
func decompress(codec format.CompressionCodec, b []byte, raw int64) ([]byte, error) {
	switch codec {
	case format.Snappy:
		if n, w := binary.Uvarint(b); w <= 0 || n != uint64(raw) {
			return nil, fmt.Errorf("%s bytes, want %s", record.Number(n), record.Number(raw))
		}
		return parquet.Snappy.Decode(nil, b)
	case format.Gzip:
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, raw+1))
	case format.Zstd:
		return decoder().DecodeAll(b, make([]byte, 0, raw))
	}
	// LZ4_RAW: the library (0.32) returns other bytes for pages that shrink to more than a third.
	return nil, record.Unknown(record.NoOffset, "codec", codec.String())
}

// sized cuts off a part that begins with its length.
func sized(b []byte) (part, rest []byte, err error) {
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return nil, nil, record.ErrShort
	}
	n := 4 + int(binary.LittleEndian.Uint32(b))
	return b[4:n], b[n:], nil
}

// foreignValues checks the counts within the values of a page.
func (p *pages) foreignValues(b []byte, n int64, e format.Encoding) error {
	kind := parquet.Kind(p.c.Type)
	switch {
	case e == format.Plain, e == format.ByteStreamSplit, len(b) == 0:
		return nil
	case e == format.RLEDictionary, e == plainDictionary:
		return checkRuns(b[1:], int64(b[0]), n+foreignFill)
	case e == format.DeltaBinaryPacked && (kind == parquet.Int32 || kind == parquet.Int64), e == format.DeltaLengthByteArray && kind == parquet.ByteArray:
		return differences(b, n)
	case e == format.RLE && kind == parquet.Boolean:
		runs, _, err := sized(b)
		if err == nil {
			err = checkRuns(runs, 1, n+foreignFill)
		}
		return err
	}
	return record.Unknown(record.NoOffset, "encoding", e.String()+" of "+p.c.Type.String()) // DELTA_BYTE_ARRAY unfolds without bounds
}

// Cells reads a column of any program's file, row by row.
type Cells struct {
	*Leaf
	f      *File
	off    int64
	pages  *parquet.FilePages
	page   parquet.Page
	values parquet.ValueReader
	buf    [256]parquet.Value
	have   []parquet.Value
	left   int64 // rows that are not in have
}

// Cells returns the cells of a column in a row group that CheckForeign has found sound.
func (f *File) Cells(group int, l *Leaf) *Cells {
	c := &f.Metadata().RowGroups[group].Columns[l.index].MetaData
	chunk := f.RowGroups()[group].ColumnChunks()[l.index].(*parquet.FileColumnChunk)
	return &Cells{Leaf: l, f: f, off: firstPage(c), pages: chunk.PagesFrom(f.r), left: c.NumValues}
}

// Next moves to the next row.
func (c *Cells) Next() error {
	if len(c.have) > 1 {
		c.have = c.have[1:]
		return nil
	}
	if c.left == 0 {
		return io.EOF
	}
	if err := guard(c.more); err != nil {
		return corrupt(c.off, "column "+c.Name, err)
	}
	return nil
}

// more reads the next values.
func (c *Cells) more() (err error) {
	for {
		if c.values != nil {
			n, err := c.values.ReadValues(c.buf[:])
			if c.have = c.buf[:n]; int64(n) > c.left {
				return fmt.Errorf("more than %s rows", record.Number(c.left))
			}
			if c.left -= int64(n); n > 0 {
				return nil
			}
			if err != nil && err != io.EOF {
				return err
			}
			c.release()
		}
		if c.page, err = c.pages.ReadPage(); err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s rows are missing: %w", record.Number(c.left), record.ErrShort)
			}
			return err
		}
		c.values = c.page.Values()
	}
}

func (c *Cells) release() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	c.page, c.values = nil, nil
}

// Close gives the buffers back.
func (c *Cells) Close() {
	c.have = nil
	c.release()
	_ = c.pages.Close()
}

// IsNull reports whether the row has no value.
func (c *Cells) IsNull() bool { return c.have[0].IsNull() }

// ErrNoColumn means that a file has no column of a name.
var ErrNoColumn = errors.New("no column")

// Leaf returns a column by its name, whose parts are separated by dots.
func (f *File) Leaf(name string) (*Leaf, error) {
	at := f.Root().Column(name)
	if at == nil {
		at = f.Root()
		for _, part := range strings.Split(name, ".") {
			if at = at.Column(part); at == nil {
				return nil, fmt.Errorf("%w %q: it has %s", ErrNoColumn, name, f.names())
			}
		}
	}
	if !at.Leaf() || at.MaxRepetitionLevel() > 0 {
		return nil, fmt.Errorf("column %q is a group, list or map: name a column with one value in each row", name)
	}
	l := &Leaf{Name: name, index: at.Index()}
	if l.as, l.unit, l.scale = asOf(at.Type()); l.as == asNothing {
		return nil, fmt.Errorf("column %q is %s, for which there is no text: write it as a string", name, at.Type())
	}
	return l, nil
}

// names lists the columns, at most shownNames.
func (f *File) names() string {
	const shownNames = 20
	var names []string
	for _, path := range f.Schema().Columns() {
		if len(names) == shownNames {
			return strings.Join(names, ", ") + ", …"
		}
		names = append(names, strings.Join(path, "."))
	}
	return strings.Join(names, ", ")
}
