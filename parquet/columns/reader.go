package columns

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

// Reader reads the values of a column in a row group, page by page.
type Reader struct {
	f      *File
	leaf   int
	chunk  *parquet.FileColumnChunk
	pages  *parquet.FilePages
	page   parquet.Page
	column *format.ColumnChunk
	left   int64 // rows after the page

	levels []byte // of the page's rows, 1: there is a value; nil: all have one
	rows   int
	at     int // next row
	value  int // next value

	data    []byte // byte strings, of the page or the dictionary
	offsets []uint32
	nums    []int64
	floats  []float64
	ids     []int32 // in the dictionary; nil: values are in the page
}

// Open moves the reader to a column in a row group of a file, which CheckColumn has found sound.
func (r *Reader) Open(f *File, group, leaf int) {
	r.Close()
	g := &f.Metadata().RowGroups[group]
	*r = Reader{f: f, leaf: leaf, column: &g.Columns[leaf], left: g.NumRows}
	r.chunk = f.RowGroups()[group].ColumnChunks()[leaf].(*parquet.FileColumnChunk)
}

// Close gives the buffers back.
func (r *Reader) Close() {
	if r.page != nil {
		parquet.Release(r.page)
		r.page = nil
	}
	if r.pages != nil {
		_ = r.pages.Close()
		r.pages = nil
	}
}

// Rows returns the rows of the current page that are not read.
func (r *Reader) Rows() int { return r.rows - r.at }

// More moves to the next page if all rows of the current one were read. It returns io.EOF after the last.
func (r *Reader) More() error {
	for r.at == r.rows {
		if r.left == 0 {
			return io.EOF
		}
		if err := r.next(); err != nil {
			return corrupt(firstPage(&r.column.MetaData), "column "+r.f.name(r.leaf), err)
		}
	}
	return nil
}

// next reads a page. Values of the previous page become invalid.
func (r *Reader) next() error {
	if r.page != nil {
		parquet.Release(r.page)
		r.page = nil
	}
	return guard(func() (err error) {
		if r.pages == nil {
			r.pages = r.chunk.PagesFrom(r.f.r)
		}
		if r.page, err = r.pages.ReadPage(); err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s rows are missing: %w", record.Number(r.left), record.ErrShort)
			}
			return err
		}
		return r.open()
	})
}

// open takes the values of the page.
func (r *Reader) open() error {
	p := r.page
	rows, nulls := p.NumRows(), p.NumNulls()
	if rows > r.left || p.NumValues() != rows || len(p.RepetitionLevels()) > 0 {
		return fmt.Errorf("a page of %s values and %s rows, %s are left", record.Number(p.NumValues()), record.Number(rows), record.Number(r.left))
	}
	if r.levels = p.DefinitionLevels(); nulls == 0 {
		r.levels = nil
	}
	r.rows, r.at, r.value = int(rows), 0, 0
	r.left -= rows
	v := p.Data()
	if r.ids = nil; p.Dictionary() != nil {
		r.ids = v.Int32()
		v = p.Dictionary().Page().Data()
	}
	n := int(rows - nulls) // values
	have := 0
	switch p.Type().Kind() {
	case parquet.ByteArray:
		r.data, r.offsets = v.ByteArray()
		have = len(r.offsets) - 1
	case parquet.Int64:
		r.nums = v.Int64()
		have = len(r.nums)
	case parquet.Double:
		r.floats = v.Double()
		have = len(r.floats)
	default:
		return record.Unknown(record.NoOffset, "column "+r.f.name(r.leaf), p.Type().String())
	}
	if r.ids == nil {
		if have < n {
			return fmt.Errorf("%s values in %s rows", record.Number(have), record.Number(n))
		}
		return nil
	}
	if len(r.ids) < n {
		return fmt.Errorf("%s values in %s rows", record.Number(len(r.ids)), record.Number(n))
	}
	for _, id := range r.ids {
		if id < 0 || int(id) >= have {
			return fmt.Errorf("value %d of a dictionary of %d", id, have)
		}
	}
	return nil
}

// Next moves to the next row of the page and returns the number of its value; false if it is null.
func (r *Reader) Next() (int, bool) {
	null := r.levels != nil && r.levels[r.at] == 0
	r.at++
	if null {
		return 0, false
	}
	r.value++
	return r.value - 1, true
}

// Bytes returns a value. It is valid until the next page is read.
func (r *Reader) Bytes(i int) []byte {
	if r.ids != nil {
		i = int(r.ids[i])
	}
	from, to := r.offsets[i], r.offsets[i+1]
	return r.data[from:to:to]
}

// Int returns an integer.
func (r *Reader) Int(i int) int64 {
	if r.ids != nil {
		i = int(r.ids[i])
	}
	return r.nums[i]
}

// Float returns a number.
func (r *Reader) Float(i int) float64 {
	if r.ids != nil {
		i = int(r.ids[i])
	}
	return r.floats[i]
}

// ID returns the index of a value in the dictionary of the row group; false if it is not there.
func (r *Reader) ID(i int) (int32, bool) {
	if r.ids != nil {
		return r.ids[i], true
	}
	return 0, false
}

// index makes the library read the offset index.
func (r *Reader) index() error {
	c := r.column
	if c.OffsetIndexOffset == 0 {
		return nil
	}
	b := make([]byte, c.OffsetIndexLength)
	if err := readAt(r.f.r, b, c.OffsetIndexOffset); err != nil {
		return err
	}
	if _, err := checkStruct(b); err != nil {
		return err
	}
	index, err := r.chunk.OffsetIndexFrom(r.f.r)
	if err != nil {
		return err
	}
	starts, err := r.f.starts(&c.MetaData)
	for i := 0; err == nil && i < index.NumPages(); i++ {
		if !starts[index.Offset(i)] {
			err = fmt.Errorf("no page begins at %d", index.Offset(i))
		}
	}
	return err
}

// SeekRow moves a reader that was just opened to a row of the row group. It uses the offset index, if any.
func (r *Reader) SeekRow(row int64) error {
	return guard(func() error {
		if err := r.index(); err != nil {
			return err
		}
		r.pages = r.chunk.PagesFrom(r.f.r)
		r.left -= row
		if r.left == 0 {
			return nil
		}
		return r.pages.SeekToRow(row)
	})
}
