package pq

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
)

// magic begins and ends a file.
const magic = "PAR1"

// FirstPage is the offset of the first page.
const FirstPage = int64(len(magic))

// maxGroupRows limits the rows of a row group.
const maxGroupRows = 1 << 20

// Writer writes a file. Every row has a value or a null in each column.
//
//	+------+-----------------------------+----------------+--------+------------+------+
//	| PAR1 | row groups: pages by column | column indexes | footer | its length | PAR1 |
//	|      |                             | offset indexes |        | (LE32)     |      |
//	+------+-----------------------------+----------------+--------+------------+------+
type Writer struct {
	w      io.Writer
	cols   []*column
	sorted []int
	limit  int
	off    int64
	rows   int64
	groups []group
	err    error
}

// group is a finished row group.
type group struct {
	rows, raw, size int64
	off             int64
	chunks          []chunk
}

// chunk is a finished column of a row group.
type chunk struct {
	off, dict   int64 // of the first data page, and of the dictionary; 0: no dictionary
	size, raw   int64
	encodings   []int
	pages       []page // without data
	bounds      bounds
	nulls       int64
	sums        string
	columnIndex [2]int64 // offset and size
	offsetIndex [2]int64
}

// NewEncoder returns a compressor of pages. Writers that are used in turn may share it.
func NewEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(pageBytes),
		zstd.WithLowerEncoderMem(true))
}

// NewWriter returns a writer of a file whose rows ascend by some columns. It keeps about limit bytes of a row group.
func NewWriter(w io.Writer, columns []Column, sorted []int, limit int, z *zstd.Encoder) *Writer {
	out := &Writer{w: w, sorted: sorted, limit: limit}
	c := &compressor{zstd: z}
	for _, column := range columns {
		out.cols = append(out.cols, newColumn(column, c))
	}
	out.write([]byte(magic))
	return out
}

// Bytes adds a byte string to n rows of a column.
func (w *Writer) Bytes(column int, v []byte, n int) { w.cols[column].bytes(v, n) }

// Int adds an integer to n rows of a column.
func (w *Writer) Int(column int, v int64, n int) { w.cols[column].int(v, n) }

// Float adds a number to a row of a column.
func (w *Writer) Float(column int, v float64) { w.cols[column].float(v) }

// Null leaves n rows of a column null.
func (w *Writer) Null(column, n int) { w.cols[column].null(n) }

// Rows ends n rows. It writes the row group if it is full, and reports that with true.
func (w *Writer) Rows(n int) (bool, error) {
	w.rows += int64(n)
	buffered := 0
	for _, c := range w.cols {
		buffered += c.buffered()
	}
	first := w.cols[0]
	if buffered < w.limit && first.total+int64(first.rows) < maxGroupRows {
		return false, w.err
	}
	return true, w.flush()
}

// Size returns the bytes written.
func (w *Writer) Size() int64 { return w.off }

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
	w.off += int64(len(b))
}

// flush writes the row group.
func (w *Writer) flush() error {
	g := group{off: w.off}
	for i, c := range w.cols {
		c.endPage()
		if i == 0 {
			g.rows = c.total
		}
		if c.total != g.rows && w.err == nil {
			w.err = fmt.Errorf("column %s has %d rows, %s has %d", c.Name, c.total, w.cols[0].Name, g.rows) // a bug
		}
	}
	if g.rows == 0 || w.err != nil {
		return w.err
	}
	for _, c := range w.cols {
		g.chunks = append(g.chunks, w.chunk(c))
		done := &g.chunks[len(g.chunks)-1]
		g.raw, g.size = g.raw+done.raw, g.size+done.size
		c.reset()
	}
	w.groups = append(w.groups, g)
	return w.err
}

// chunk writes a column of a row group.
func (w *Writer) chunk(c *column) (out chunk) {
	from := w.off
	if dict := c.dictPage(); dict != nil {
		out.dict = w.off
		w.write(dict)
	}
	out.off = w.off
	for i := range c.pages {
		p := c.pages[i]
		w.write(p.data)
		p.size, p.data, out.nulls = len(p.data), nil, out.nulls+int64(p.nulls)
		out.pages = append(out.pages, p)
	}
	out.size, out.raw, out.bounds, out.sums = w.off-from, c.raw, c.chunk, c.sumsText()
	for e, used := range c.encoded {
		if used {
			out.encodings = append(out.encodings, e)
		}
	}
	if c.Optional && !slices.Contains(out.encodings, encRLE) {
		out.encodings = append(out.encodings, encRLE)
	}
	return out
}

// Tail is the part of a file after its row groups.
type Tail struct {
	Off  int64
	Sum  uint64 // XXH3 of its bytes
	Size int64  // of the file
	Rows int64
}

// Close writes the rest of the rows, the indexes and the footer. Pairs are put into its metadata.
func (w *Writer) Close(creator string, pairs map[string]string) (Tail, error) {
	if err := w.flush(); err != nil {
		return Tail{}, err
	}
	t := Tail{Off: w.off, Rows: w.rows}
	sum := xxh3.New()
	out := w.w
	w.w = io.MultiWriter(out, sum)
	w.indexes()
	footer := w.footer(creator, pairs)
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	w.write(append(footer, magic...))
	w.w = out
	t.Sum, t.Size = sum.Sum64(), w.off
	return t, w.err
}

// indexes writes the column indexes, then the offset indexes, of all chunks.
func (w *Writer) indexes() {
	for i := range w.groups {
		for j := range w.groups[i].chunks {
			c := &w.groups[i].chunks[j]
			if b := c.appendColumnIndex(w.cols[j].Kind); b != nil {
				c.columnIndex = [2]int64{w.off, int64(len(b))}
				w.write(b)
			}
		}
	}
	for i := range w.groups {
		for j := range w.groups[i].chunks {
			c := &w.groups[i].chunks[j]
			b := c.appendOffsetIndex()
			c.offsetIndex = [2]int64{w.off, int64(len(b))}
			w.write(b)
		}
	}
}

// appendColumnIndex encodes the bounds of each page; nil if a page has values without bounds.
func (c *chunk) appendColumnIndex(k Kind) []byte {
	var e encoder
	e.begin()
	n := len(c.pages)
	e.list(1, cTrue, n)
	for i := range c.pages {
		p := &c.pages[i]
		if p.nulls < p.rows && !p.bounded {
			return nil
		}
		e.b = append(e.b, map[bool]byte{true: cTrue, false: cFalse}[p.nulls == p.rows])
	}
	e.list(2, cBinary, n)
	for i := range c.pages {
		e.bytes(c.pages[i].least)
	}
	e.list(3, cBinary, n)
	for i := range c.pages {
		e.bytes(c.pages[i].most)
	}
	order := int32(0)
	if k == Binary || k == UTF8 {
		order = c.order()
	}
	e.i32(4, order)
	e.list(5, cI64, n)
	for i := range c.pages {
		e.b = binary.AppendVarint(e.b, int64(c.pages[i].nulls))
	}
	e.end()
	return e.b
}

// order returns 1 if the bounds of pages with values ascend, else 0.
func (c *chunk) order() int32 {
	var last *page
	for i := range c.pages {
		p := &c.pages[i]
		if p.nulls == p.rows {
			continue
		}
		if last != nil && (string(p.least) < string(last.least) || string(p.most) < string(last.most)) {
			return 0
		}
		last = p
	}
	return 1
}

func (c *chunk) appendOffsetIndex() []byte {
	var e encoder
	e.begin()
	e.list(1, cStruct, len(c.pages))
	off, row := c.off, int64(0)
	for i := range c.pages {
		p := &c.pages[i]
		e.begin()
		e.i64(1, off)
		e.i32(2, int32(p.size))
		e.i64(3, row)
		e.end()
		off, row = off+int64(p.size), row+int64(p.rows)
	}
	e.end()
	return e.b
}

// footer encodes FileMetaData.
func (w *Writer) footer(creator string, pairs map[string]string) []byte {
	var e encoder
	e.begin()
	e.i32(1, 2)
	e.list(2, cStruct, len(w.cols)+1)
	e.begin()
	e.text(4, "schema")
	e.i32(5, int32(len(w.cols)))
	e.end()
	for _, c := range w.cols {
		e.column(&c.Column)
	}
	e.i64(3, w.rows)
	e.list(4, cStruct, len(w.groups))
	for i := range w.groups {
		w.appendGroup(&e, &w.groups[i], i)
	}
	e.list(5, cStruct, len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		e.pair(key, pairs[key])
	}
	e.text(6, creator)
	e.list(7, cStruct, len(w.cols))
	for range w.cols {
		e.begin()
		e.empty(1) // the order of the type
		e.end()
	}
	e.end()
	return e.b
}

func (e *encoder) pair(key, value string) {
	e.begin()
	e.text(1, key)
	e.text(2, value)
	e.end()
}

// column appends the SchemaElement of a column.
func (e *encoder) column(c *Column) {
	e.begin()
	e.i32(1, int32(c.Kind.Physical()))
	if c.Optional {
		e.i32(3, optional)
	} else {
		e.i32(3, required)
	}
	e.text(4, c.Name)
	switch c.Kind {
	case UTF8:
		e.i32(6, convUTF8)
		e.structure(10)
		e.empty(1)
		e.end()
	case Timestamp:
		e.i32(6, convMillis)
		e.structure(10)
		e.structure(8)
		e.bool(logicalUTC, true)
		e.structure(logicalUnit)
		e.empty(1)
		e.end()
		e.end()
		e.end()
	}
	e.end()
}

// Physical returns the type in files.
func (k Kind) Physical() Physical {
	switch k {
	case Integer, Timestamp:
		return Int64
	case Number:
		return Double
	}
	return ByteArray
}

func (w *Writer) appendGroup(e *encoder, g *group, n int) {
	e.begin()
	e.list(1, cStruct, len(g.chunks))
	for i := range g.chunks {
		w.appendChunk(e, &g.chunks[i], w.cols[i], g.rows)
	}
	e.i64(2, g.raw)
	e.i64(3, g.rows)
	e.list(4, cStruct, len(w.sorted))
	for _, column := range w.sorted {
		e.begin()
		e.i32(1, int32(column))
		e.bool(2, false)
		e.bool(3, false)
		e.end()
	}
	e.i64(5, g.off)
	e.i64(6, g.size)
	if n <= 1<<15-1 {
		e.field(7, cI16)
		e.b = binary.AppendVarint(e.b, int64(n))
	}
	e.end()
}

func (w *Writer) appendChunk(e *encoder, c *chunk, col *column, rows int64) {
	e.begin()
	e.i64(2, 0)
	e.structure(3)
	e.i32(1, int32(col.Kind.Physical()))
	e.list(2, cI32, len(c.encodings))
	for _, v := range c.encodings {
		e.b = binary.AppendVarint(e.b, int64(v))
	}
	e.list(3, cBinary, 1)
	e.bytes([]byte(col.Name))
	e.i32(4, codecZstd)
	e.i64(5, rows)
	e.i64(6, c.raw)
	e.i64(7, c.size)
	e.list(8, cStruct, 1)
	e.pair(sumsKey, c.sums)
	e.i64(9, c.off)
	if c.dict > 0 {
		e.i64(11, c.dict)
	}
	e.statistics(c, col.Kind)
	e.end()
	e.i64(4, c.offsetIndex[0])
	e.i32(5, int32(c.offsetIndex[1]))
	if c.columnIndex[1] > 0 {
		e.i64(6, c.columnIndex[0])
		e.i32(7, int32(c.columnIndex[1]))
	}
	e.end()
}

func (e *encoder) statistics(c *chunk, k Kind) {
	least, most, ok := c.bounds.ends(k)
	e.structure(12)
	e.i64(3, c.nulls)
	if ok {
		e.binary(5, most)
		e.binary(6, least)
		e.bool(7, !c.bounds.cut)
		e.bool(8, !c.bounds.short)
	}
	e.end()
}
