package columns

import (
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

// Cells reads a column of any program's file, row by row. Pages are decompressed here: the library (0.32) returns other
// bytes for pages in LZ4_RAW that shrink to more than a third, and cannot be told a limit.
type Cells struct {
	*Leaf
	pages   pages
	at, end int64
	dict    parquet.Dictionary

	levels []byte // of the rows of the page that are left; nil: none is null
	rows   int    // of the page that are left
	values parquet.ValueReader
	ids    []int32 // in the dictionary, of values that are left; values is nil then
	buf    [256]parquet.Value
	have   []parquet.Value // the value of the row, and the next ones
	null   bool
}

// Cells returns the cells of a column in a row group that CheckForeign has found sound.
func (f *File) Cells(group int, l *Leaf) *Cells {
	m := &f.Metadata().RowGroups[group].Columns[l.index].MetaData
	c := &Cells{Leaf: l, at: firstPage(m)}
	c.end = c.at + m.TotalCompressedSize
	c.pages = pages{f: f, c: m, left: m.NumValues, foreign: true, depth: l.node.MaxDefinitionLevel(), typ: l.node.Type(), cells: c}
	return c
}

// Next moves to the next row.
func (c *Cells) Next() error {
	off := c.at
	err := guard(c.next)
	if err == nil || err == io.EOF {
		return err
	}
	return corrupt(off, "column "+c.Name, err)
}

func (c *Cells) next() error {
	for c.rows == 0 {
		if c.at >= c.end {
			if c.pages.left > 0 {
				return fmt.Errorf("%s rows are missing: %w", record.Number(c.pages.left), record.ErrShort)
			}
			return io.EOF
		}
		size, err := c.pages.page(c.at, c.end)
		if err != nil {
			return err
		}
		c.at += size
	}
	c.rows--
	if c.null = false; c.levels != nil {
		c.null = int(c.levels[0]) < c.pages.depth
		c.levels = c.levels[1:]
	}
	if c.null {
		return nil
	}
	if len(c.have) > 1 {
		c.have = c.have[1:]
		return nil
	}
	return c.more()
}

// more takes the next values of the page.
func (c *Cells) more() error {
	if c.values == nil {
		ids := c.ids[:min(len(c.ids), len(c.buf))]
		c.ids = c.ids[len(ids):]
		c.dict.Lookup(ids, c.buf[:])
		c.have = c.buf[:len(ids)]
	} else {
		n, err := c.values.ReadValues(c.buf[:])
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		c.have = c.buf[:n]
	}
	if len(c.have) == 0 {
		return record.ErrShort
	}
	return nil
}

// open takes the levels and values of a page.
func (c *Cells) open(levels, b []byte, n int, e format.Encoding) (err error) {
	c.levels, c.rows, c.values, c.ids, c.have = nil, n, nil, nil, nil
	values := n
	if depth := c.pages.depth; depth > 0 {
		if c.levels, err = (&rle.Encoding{BitWidth: bits.Len(uint(depth))}).DecodeLevels(nil, levels); err != nil {
			return err
		}
		if len(c.levels) < n {
			return record.ErrShort
		}
		c.levels = c.levels[:n]
		for _, level := range c.levels {
			if int(level) < depth {
				values--
			}
		}
	}
	switch {
	case values == 0:
		return nil
	case e == format.RLEDictionary, e == plainDictionary:
		if c.dict == nil {
			return errors.New("no dictionary")
		}
		if c.ids, err = parquet.RLEDictionary.DecodeInt32(nil, b); err == nil && len(c.ids) < values {
			err = record.ErrShort
		}
		c.ids = c.ids[:min(values, len(c.ids))] // the last run is filled up
		return err
	}
	v, err := c.decode(b, values, e)
	if err == nil {
		c.values = c.node.Type().NewPage(c.index, values, v).Values()
	}
	return err
}

// dictionary takes the values that pages refer to.
func (c *Cells) dictionary(b []byte, n int) error {
	return guard(func() error {
		v, err := c.decode(b, n, format.Plain)
		if err == nil {
			c.dict = c.node.Type().NewDictionary(c.index, n, v)
		}
		return err
	})
}

// sizes are those of values of fixed size; of others, their type or their offsets say it.
var sizes = map[parquet.Kind]int{parquet.Int32: 4, parquet.Float: 4, parquet.Int64: 8, parquet.Double: 8, parquet.Int96: 12}

// decode decodes n values.
func (c *Cells) decode(b []byte, n int, e format.Encoding) (v encoding.Values, err error) {
	t, enc := c.node.Type(), parquet.LookupEncoding(e)
	room := b
	if !enc.CanDecodeInPlace() {
		room = make([]byte, t.EstimateDecodeSize(n, b, enc))
	}
	var offsets []uint32
	size := sizes[t.Kind()]
	switch t.Kind() {
	case parquet.ByteArray:
		offsets = make([]uint32, 0, n+1)
	case parquet.FixedLenByteArray:
		size = t.Length()
	}
	if v, err = t.Decode(t.NewValues(room, offsets), b, enc); err != nil {
		return v, err
	}
	if offsets != nil {
		if _, offsets = v.ByteArray(); len(offsets) != n+1 {
			return v, fmt.Errorf("%s values, want %s", record.Number(len(offsets)-1), record.Number(n))
		}
		return v, nil
	}
	switch want := int64(size) * int64(n); {
	case v.Size() < want:
		return v, record.ErrShort
	case v.Size() > want && e == format.ByteStreamSplit: // their bytes are elsewhere then
		return v, record.ErrTrailing
	}
	return v, nil
}

// IsNull reports whether the row has no value.
func (c *Cells) IsNull() bool { return c.null }

// Close forgets the page.
func (c *Cells) Close() { c.dict, c.levels, c.values, c.ids, c.have = nil, nil, nil, nil, nil }
