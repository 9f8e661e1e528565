package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"kvferry/parquet/packed"
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
	if err != nil {
		return err
	}
	if p.depth == 0 {
		return p.foreignValues(nil, b, n, h.Encoding)
	}
	if h.DefinitionLevelEncoding != format.RLE {
		return record.Unknown(record.NoOffset, "levels", h.DefinitionLevelEncoding.String())
	}
	levels, b, err := sized(b)
	if err != nil {
		return err
	}
	return p.foreignValues(levels, b, n, h.Encoding)
}

// foreignV2 checks a page whose levels come before its values.
func (p *pages) foreignV2(off, packed, raw int64, h *format.DataPageHeaderV2) error {
	n, size := int64(h.NumValues), int64(h.DefinitionLevelsByteLength)
	if err := p.count(n); err != nil {
		return err
	}
	if h.RepetitionLevelsByteLength != 0 || size < 0 || size > min(packed, raw) || h.NumNulls < 0 || h.NumNulls > h.NumValues {
		return fmt.Errorf("levels of %s and %s bytes, %s nulls", record.Number(h.RepetitionLevelsByteLength), record.Number(size), record.Number(h.NumNulls))
	}
	levels := make([]byte, size)
	if err := readAt(p.f.r, levels, off); err != nil {
		return err
	}
	var b []byte
	if packed > size {
		var err error
		plain := p.c.Codec == format.Uncompressed || h.IsCompressed.Valid && !h.IsCompressed.V
		if b, err = p.unpack(off+size, packed-size, raw-size, plain); err != nil {
			return err
		}
	}
	return p.foreignValues(levels, b, n, h.Encoding)
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
	case format.Brotli:
		return io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(b)), raw+1))
	case format.Zstd:
		return decoder().DecodeAll(b, make([]byte, 0, raw))
	case format.Lz4Raw:
		out := make([]byte, raw)
		n, err := lz4.UncompressBlock(b, out)
		return out[:max(n, 0)], err
	}
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

// foreignValues checks the counts within the levels and values of a page, and gives them to the cells.
func (p *pages) foreignValues(levels, b []byte, n int64, e format.Encoding) (err error) {
	if err := packed.CheckRuns(levels, int64(bits.Len(uint(p.depth))), n+foreignFill); err != nil {
		return err
	}
	kind := parquet.Kind(p.c.Type)
	switch {
	case e == format.Plain, e == format.ByteStreamSplit, len(b) == 0:
	case e == format.RLEDictionary, e == plainDictionary:
		err = packed.CheckRuns(b[1:], int64(b[0]), n+foreignFill)
	case e == format.DeltaBinaryPacked && kind == parquet.Int32:
		e = format.Plain
		b, err = packed.Differences(b, n)
	case e == format.DeltaBinaryPacked && kind == parquet.Int64, e == format.DeltaLengthByteArray && kind == parquet.ByteArray:
		err = packed.CheckDifferences(b, n)
	case e == format.DeltaByteArray && (kind == parquet.ByteArray || kind == parquet.FixedLenByteArray):
		e = format.Plain
		size := int64(0)
		if kind == parquet.FixedLenByteArray {
			size = int64(p.typ.Length())
		}
		b, err = packed.Unfold(b, n, max(maxForeignPage, maxForeignRatio*int64(len(b))), size)
	case e == format.RLE && kind == parquet.Boolean:
		var runs []byte
		if runs, _, err = sized(b); err == nil {
			err = packed.CheckRuns(runs, 1, n+foreignFill)
		}
	default:
		return record.Unknown(record.NoOffset, "encoding", e.String()+" of "+p.c.Type.String())
	}
	if err != nil || p.cells == nil {
		return err
	}
	return p.cells.open(levels, b, int(n), e)
}

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
	l := &Leaf{Name: name, index: at.Index(), node: at}
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
