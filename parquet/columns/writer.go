package columns

import (
	"bufio"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/zeebo/xxh3"

	"kvferry/record"
)

const (
	// PageBytes is the size of values at which a page ends.
	PageBytes = 128 << 10
	// maxGroupRows limits the rows of a row group.
	maxGroupRows = 1 << 20
	// A column passes values to the library when it has that many, or bytes of them.
	pendingValues = 1024
	pendingBytes  = 32 << 10
	bufferBytes   = 64 << 10
)

// Section is a part of a file with its checksum: a row group, or the indexes and the footer.
type Section struct {
	Off, End int64
	Sum      uint64 // XXH3
	Rows     int64  // of a row group
}

// Writer writes a file. Every row has a value or a null in each column.
type Writer struct {
	out    output
	w      *parquet.GenericWriter[any]
	group  *parquet.ConcurrentRowGroupWriter
	cols   []column
	limit  int64
	rows   int64 // of the row group
	full   bool  // the library got values since the size was last looked at
	groups []Section
	err    error
}

// output counts and hashes the bytes of the file.
type output struct {
	w   *bufio.Writer
	off int64
	sum *xxh3.Hasher
}

// Write appends b.
func (o *output) Write(b []byte) (int, error) {
	_, _ = o.sum.Write(b)
	o.off += int64(len(b))
	return o.w.Write(b)
}

// section ends a part that began at off.
func (o *output) section(off, rows int64) Section {
	s := Section{Off: off, End: o.off, Sum: o.sum.Sum64(), Rows: rows}
	o.sum.Reset()
	return s
}

// Options describe a file to write.
type Options struct {
	Columns []Column
	Sorted  []string // columns that rows ascend by
	Creator string
	Pairs   map[string]string // metadata
	Limit   int64             // bytes of a row group in memory
	// Compression is one of Compressions; "" is the first.
	Compression string
}

// ConfigureWriter sets the name of the program as it is; the library's own option adds to it.
func (o *Options) ConfigureWriter(c *parquet.WriterConfig) { c.CreatedBy = o.Creator }

// NewWriter returns a writer of a file.
func NewWriter(w io.Writer, o *Options) *Writer {
	out := &Writer{out: output{bufio.NewWriterSize(w, bufferBytes), 0, xxh3.New()}, limit: o.Limit}
	var sorted []parquet.SortingColumn
	for _, name := range o.Sorted {
		sorted = append(sorted, parquet.Ascending(name))
	}
	page := int(min(PageBytes, max(o.Limit/8, 4<<10)))
	options := []parquet.WriterOption{o, schemaOf(o.Columns, o.Compression), parquet.WriteBufferSize(0),
		parquet.PageBufferSize(page), parquet.DictionaryMaxBytes(min(1<<20, max(o.Limit/4, 4<<10))), parquet.DataPageStatistics(false),
		parquet.ColumnIndexSizeLimit(func([]string) int { return 0 }), // columns limit theirs by themselves
		parquet.SortingWriterConfig(parquet.SortingColumns(sorted...))}
	for key, value := range o.Pairs {
		options = append(options, parquet.KeyValueMetadata(key, value))
	}
	out.w = parquet.NewGenericWriter[any](&out.out, options...)
	out.group = out.w.BeginRowGroup()
	for i, c := range out.group.ColumnWriters() {
		col := column{w: c, f: out}
		if o.Columns[i].Optional {
			col.level = 1
		}
		out.cols = append(out.cols, col)
	}
	return out
}

// column collects values for the library, which is slow with few.
type column struct {
	w     *parquet.ColumnWriter
	f     *Writer
	level int // of values that are not null
	vals  []parquet.Value
	nulls int // pending; vals is empty then
	rows  int64
	arena []byte
}

// noValues are nulls.
var noValues [pendingValues]parquet.Value

// flush passes the pending values on.
func (c *column) flush() {
	for c.nulls > 0 {
		n := min(c.nulls, len(noValues))
		c.write(noValues[:n])
		c.nulls -= n
	}
	if len(c.vals) > 0 {
		c.write(c.vals)
		c.vals = c.vals[:0]
	}
	c.arena = c.arena[:0]
}

func (c *column) write(vals []parquet.Value) {
	c.f.full = true
	c.rows += int64(len(vals))
	if c.f.err == nil {
		_, c.f.err = c.w.WriteRowValues(vals)
	}
}

// add adds a value to n rows.
func (c *column) add(v parquet.Value, n int) {
	if c.nulls > 0 {
		c.flush()
	}
	if c.level > 0 {
		v.SetDefinitionLevel(c.level)
	}
	for ; n > 0; n-- {
		c.vals = append(c.vals, v)
		if len(c.vals) >= pendingValues {
			c.write(c.vals)
			c.vals = c.vals[:0]
		}
	}
}

// Bytes adds a byte string to n rows of a column.
func (w *Writer) Bytes(column int, v []byte, n int) {
	c := &w.cols[column]
	if len(v) >= pendingBytes/2 { // not copied
		c.flush()
		c.add(parquet.ByteArrayValue(v), n)
		c.flush()
		return
	}
	if c.nulls > 0 || len(c.arena)+len(v) > cap(c.arena) {
		c.flush()
		if cap(c.arena) == 0 {
			c.arena = make([]byte, 0, pendingBytes)
		}
	}
	at := len(c.arena)
	c.arena = append(c.arena, v...)
	c.add(parquet.ByteArrayValue(c.arena[at:]), n)
	if len(c.vals) == 0 {
		c.arena = c.arena[:0]
	}
}

// Int adds an integer to n rows of a column.
func (w *Writer) Int(column int, v int64, n int) { w.cols[column].add(parquet.Int64Value(v), n) }

// Float adds a number to a row of a column.
func (w *Writer) Float(column int, v float64) { w.cols[column].add(parquet.DoubleValue(v), 1) }

// Null leaves n rows of a column null.
func (w *Writer) Null(column, n int) {
	c := &w.cols[column]
	if len(c.vals) > 0 && n < pendingValues/4 {
		for ; n > 0; n-- {
			c.vals = append(c.vals, parquet.Value{})
		}
		if len(c.vals) >= pendingValues {
			c.flush()
		}
		return
	}
	if len(c.vals) > 0 {
		c.flush()
	}
	if c.nulls += n; c.nulls >= 16*pendingValues {
		c.flush()
	}
}

// Rows ends n rows. It writes the row group if it is full, and reports that with true.
func (w *Writer) Rows(n int) (bool, error) {
	w.rows += int64(n)
	if w.rows < maxGroupRows {
		if !w.full {
			return false, w.err
		}
		w.full = false
		if w.group.Size() < w.limit {
			return false, w.err
		}
	}
	return true, w.endGroup()
}

// Size returns the bytes written.
func (w *Writer) Size() int64 { return w.out.off }

// endGroup writes the row group.
func (w *Writer) endGroup() error {
	for i := range w.cols {
		c := &w.cols[i]
		c.flush()
		if c.rows != w.rows && w.err == nil {
			w.err = fmt.Errorf("column %d has %s rows of %s", i, record.Number(c.rows), record.Number(w.rows)) // a bug
		}
		c.rows = 0
	}
	if w.err != nil || w.rows == 0 {
		return w.err
	}
	off := w.out.off
	_, w.err = w.group.Commit()
	w.groups = append(w.groups, w.out.section(off, w.rows))
	w.rows, w.full = 0, false
	return w.err
}

// Close writes the rest of the rows, the indexes and the footer. It returns the row groups and the section after them.
func (w *Writer) Close() (groups []Section, tail Section, err error) {
	if err := w.endGroup(); err != nil {
		return nil, tail, err
	}
	off := w.out.off
	if err := w.w.Close(); err != nil {
		return nil, tail, err
	}
	return w.groups, w.out.section(off, 0), w.out.w.Flush()
}
