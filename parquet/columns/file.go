package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/zeebo/xxh3"

	"kvferry/record"
)

const (
	magic     = "PAR1"
	tailBytes = 8 // the length of the footer, and the magic
	maxFooter = 1 << 30
	// maxColumns and maxNested bound a schema, whose paths the library builds as a whole.
	maxColumns = 1 << 16
	maxNested  = 64
)

// File is an open file.
type File struct {
	*parquet.File
	r    io.ReaderAt
	size int64
}

// Open reads the footer of a file, and compares its numbers with the size of the file.
func Open(r io.ReaderAt, size int64) (*File, error) {
	footer, at, err := readFooter(r, size)
	if err != nil {
		return nil, err
	}
	n, err := checkStruct(footer)
	if err == nil && n < len(footer) {
		err = record.ErrTrailing
	}
	if err != nil {
		return nil, corrupt(at+int64(n), "footer", err)
	}
	f := &File{r: r, size: size}
	err = guard(func() (err error) {
		var m format.FileMetaData
		if err = thrift.Unmarshal(new(thrift.CompactProtocol), footer, &m); err == nil {
			err = checkSchema(m.Schema)
		}
		if err != nil {
			return err
		}
		f.File, err = parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(headBytes))
		return err
	})
	if err == nil {
		err = f.check(at)
	}
	if err != nil {
		return nil, corrupt(at, "footer", err)
	}
	return f, nil
}

// readFooter returns the footer and its offset.
func readFooter(r io.ReaderAt, size int64) (footer []byte, at int64, err error) {
	if size < int64(len(magic))+tailBytes {
		return nil, 0, corrupt(record.NoOffset, "file", fmt.Errorf("%s bytes: %w", record.Number(size), record.ErrShort))
	}
	head, tail := make([]byte, len(magic)), make([]byte, tailBytes)
	if err := errors.Join(readAt(r, head, 0), readAt(r, tail, size-tailBytes)); err != nil {
		return nil, 0, err
	}
	if string(tail[4:]) == "PARE" || string(head) == "PARE" {
		return nil, 0, record.Unknown(int(size-4), "file", "an encrypted footer")
	}
	if string(head) != magic || string(tail[4:]) != magic {
		return nil, 0, corrupt(0, "file", fmt.Errorf("it begins with %q and ends in %q, want %s", head, tail[4:], magic))
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > min(size-int64(len(magic))-tailBytes, maxFooter) {
		return nil, 0, corrupt(size-tailBytes, "footer", fmt.Errorf("%s bytes in a file of %s", record.Number(n), record.Number(size)))
	}
	at = size - tailBytes - n
	footer = make([]byte, n)
	return footer, at, readAt(r, footer, at)
}

// checkSchema bounds the number of columns and the depth of their nesting.
func checkSchema(schema []format.SchemaElement) error {
	if len(schema) > maxColumns {
		return fmt.Errorf("%s columns", record.Number(len(schema)))
	}
	var left []int32 // children of the groups that are open
	for i := range schema {
		if n := schema[i].NumChildren; n.Valid && n.V > 0 {
			if left = append(left, n.V); len(left) > maxNested {
				return fmt.Errorf("columns nested more than %d deep", maxNested)
			}
			continue
		}
		for len(left) > 0 {
			last := &left[len(left)-1]
			if *last--; *last > 0 {
				break
			}
			left = left[:len(left)-1]
		}
	}
	return nil
}

// check compares the places of columns with the end of the rows.
func (f *File) check(end int64) error {
	inside := func(off, size int64) bool { return off >= 0 && size >= 0 && off <= end && size <= end-off }
	m := f.Metadata()
	leaves := len(f.Schema().Columns())
	rows := m.NumRows
	for i := range m.RowGroups {
		g := &m.RowGroups[i]
		rows -= g.NumRows
		if g.NumRows < 0 || len(g.Columns) != leaves {
			return fmt.Errorf("row group %d has %s rows of %s columns, want %s", i, record.Number(g.NumRows), record.Number(len(g.Columns)), record.Number(leaves))
		}
		for j := range g.Columns {
			c := &g.Columns[j]
			first := firstPage(&c.MetaData)
			if c.FilePath != "" || !inside(first, c.MetaData.TotalCompressedSize) || !inside(c.OffsetIndexOffset, int64(c.OffsetIndexLength)) ||
				c.MetaData.DataPageOffset < first || c.MetaData.DataPageOffset > first+c.MetaData.TotalCompressedSize || c.MetaData.NumValues < 0 {
				return fmt.Errorf("column %s of row group %d is not within the file", record.Number(j), i)
			}
		}
	}
	if rows != 0 {
		return fmt.Errorf("%s rows, %s in row groups", record.Number(m.NumRows), record.Number(m.NumRows-rows))
	}
	return nil
}

// firstPage returns the offset of a column's pages, of which the dictionary is the first.
func firstPage(m *format.ColumnMetaData) int64 {
	if m.DictionaryPageOffset != 0 {
		return m.DictionaryPageOffset
	}
	return m.DataPageOffset
}

// CheckSum reads a section of the file and compares its checksum.
func CheckSum(r io.ReaderAt, s Section) error {
	h := xxh3.New()
	n, err := io.CopyBuffer(h, io.NewSectionReader(r, s.Off, s.End-s.Off), make([]byte, bufferBytes))
	switch {
	case err != nil:
		return err
	case n < s.End-s.Off:
		return record.Short(int(s.Off), "file", int(s.End-s.Off), int(n))
	case h.Sum64() != s.Sum:
		return corrupt(s.Off, "bytes", fmt.Errorf("checksum mismatch up to offset %d", s.End))
	}
	return nil
}

// CheckSum compares the checksum of a section.
func (f *File) CheckSum(s Section) error { return CheckSum(f.r, s) }

// Groups returns where row groups end, and their rows. Row groups follow each other without gaps.
func (f *File) Groups() (out []Section) {
	m := f.Metadata()
	for i := range m.RowGroups {
		g := &m.RowGroups[i]
		s := Section{Rows: g.NumRows}
		for j := range g.Columns {
			c := &g.Columns[j].MetaData
			s.End = max(s.End, firstPage(c)+c.TotalCompressedSize)
		}
		out = append(out, s)
	}
	return out
}

// Have checks that the file has exactly these columns.
func (f *File) Have(want []Column) error {
	m := f.Metadata()
	if len(m.Schema) != len(want)+1 {
		return record.Unknown(record.NoOffset, "footer", fmt.Sprintf("%s columns", record.Number(len(m.Schema)-1)))
	}
	for i := range want {
		e, w := &m.Schema[i+1], &want[i]
		optional := e.RepetitionType.Valid && e.RepetitionType.V == format.Optional
		required := e.RepetitionType.Valid && e.RepetitionType.V == format.Required
		if e.Name != w.Name || optional != w.Optional || required == w.Optional || !e.Type.Valid || parquet.Kind(e.Type.V) != w.Kind.Physical() {
			return record.Unknown(record.NoOffset, "footer", fmt.Sprintf("column %q of %s", e.Name, e.Type.V))
		}
	}
	return nil
}

// readAt reads all of b.
func readAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF || err == nil {
		return record.Short(int(off), "file", len(b), n)
	}
	return err
}
