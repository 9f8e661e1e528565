package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

const (
	magic     = "PAR1"
	tailBytes = 8 // the length of the footer, and the magic
	maxFooter = 1 << 30
	// signatureBytes follow a footer that is not encrypted, but columns are.
	signatureBytes = 28
)

// File is an open file.
type File struct {
	footer
	root   *node
	leaves []*node
	r      io.ReaderAt
	end    int64 // of the pages
}

// footer is what kvferry needs of a file's metadata. Other parts are passed over: writers leave some out, and add some.
type footer struct {
	Schema    thrift.Slice[format.SchemaElement] `thrift:"2"`
	NumRows   int64                              `thrift:"3"`
	RowGroups thrift.Slice[rowGroup]             `thrift:"4"`
	Signed    *present                           `thrift:"8"` // some columns are encrypted
}

type rowGroup struct {
	Columns thrift.Slice[chunk] `thrift:"1"`
	NumRows int64               `thrift:"3"`
}

// chunk is a column in a row group.
type chunk struct {
	FilePath   string   `thrift:"1"`
	Meta       meta     `thrift:"3"`
	Index      int64    `thrift:"4"` // the offset index
	IndexSize  int32    `thrift:"5"`
	Bounds     int64    `thrift:"6"` // the column index
	BoundsSize int32    `thrift:"7"`
	Crypto     *present `thrift:"8"`
	Encrypted  []byte   `thrift:"9"`
}

// present stands for a structure whose fields do not matter.
type present struct{}

type meta struct {
	Type       format.Type             `thrift:"1"`
	Codec      format.CompressionCodec `thrift:"4"`
	Values     int64                   `thrift:"5"` // and nulls
	Size       int64                   `thrift:"7"` // of the pages
	Data       int64                   `thrift:"9"` // the first page with values
	Dictionary int64                   `thrift:"11"`
}

// Open reads the footer of a file, and compares its numbers with the size of the file.
func Open(r io.ReaderAt, size int64) (*File, error) {
	b, at, err := readFooter(r, size)
	if err != nil {
		return nil, err
	}
	f := &File{r: r, end: at}
	n, err := unmarshal(b, &f.footer)
	if err == nil && n < len(b) && (f.Signed == nil || len(b) != n+signatureBytes) {
		err = record.ErrTrailing
	}
	if err != nil {
		return nil, corrupt(at+int64(n), "footer", err)
	}
	if f.root, f.leaves, err = schemaNodes(f.Schema); err == nil {
		err = f.check()
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
		return nil, 0, corrupt(size-tailBytes, "footer",
			fmt.Errorf("%s bytes in a file of %s", record.Number(n), record.Number(size)))
	}
	at = size - tailBytes - n
	footer = make([]byte, n)
	return footer, at, readAt(r, footer, at)
}

// check compares the places of columns with the end of the pages.
func (f *File) check() error {
	inside := func(off, size int64) bool { return off >= 0 && size >= 0 && off <= f.end && size <= f.end-off }
	rows := f.NumRows
	for i := range f.RowGroups {
		g := &f.RowGroups[i]
		rows -= g.NumRows
		if g.NumRows < 0 || len(g.Columns) != len(f.leaves) {
			return fmt.Errorf("row group %d has %s rows of %s columns, want %s", i, record.Number(g.NumRows),
				record.Number(len(g.Columns)), record.Number(len(f.leaves)))
		}
		for j := range g.Columns {
			c := &g.Columns[j]
			if c.Meta.Values != 0 && (!inside(c.first(), c.Meta.Size) || !inside(c.Index, int64(c.IndexSize)) ||
				c.Meta.Values < 0) {
				return fmt.Errorf("column %s of row group %d is not within the file", record.Number(j), i)
			}
		}
	}
	if rows != 0 && f.NumRows != 0 { // some writers leave it 0
		return fmt.Errorf("%s rows, %s in row groups", record.Number(f.NumRows), record.Number(f.NumRows-rows))
	}
	return nil
}

// first returns the offset of a column's pages, of which the dictionary is the first.
func (c *chunk) first() int64 {
	if d := c.Meta.Dictionary; d > 0 && d < c.Meta.Data {
		return d
	}
	return c.Meta.Data
}

// Groups returns where row groups end, and their rows. Row groups follow each other without gaps.
func (f *File) Groups() (out []Section) {
	for i := range f.RowGroups {
		g := &f.RowGroups[i]
		s := Section{Rows: g.NumRows}
		for j := range g.Columns {
			c := &g.Columns[j]
			s.End = max(s.End, c.first()+c.Meta.Size)
		}
		out = append(out, s)
	}
	return out
}

// Have checks that the file has exactly these columns.
func (f *File) Have(want []Column) error {
	if len(f.Schema) != len(want)+1 {
		return record.Unknown(record.NoOffset, "footer", fmt.Sprintf("%s columns", record.Number(len(f.Schema)-1)))
	}
	for i, n := range f.root.children {
		w := &want[i]
		required := n.RepetitionType.Valid && n.RepetitionType.V == format.Required
		if n.Name != w.Name || n.group || n.optional() != w.Optional || required == w.Optional ||
			parquet.Kind(n.Type.V) != w.Kind.Physical() {
			return record.Unknown(record.NoOffset, "footer", fmt.Sprintf("column %q of %s", n.Name, n.Type.V))
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
