package parquet

import (
	"encoding/binary"
	"math"

	flatbuffers "github.com/google/flatbuffers/go"

	"kvferry/parquet/columns"
)

// A stream in the IPC format of Apache Arrow is a schema, batches of rows, and an end:
//
//	+-------------+------------------+------------------------+------+
//	| FF FF FF FF | size of metadata | metadata (FlatBuffers) | body |
//	+-------------+------------------+------------------------+------+
//
// Numbers are little-endian. Metadata and each buffer of a body are filled up to 8 bytes. A column has a
// bitmap of its values that are not null, offsets if it has byte strings, and values. Nothing is compressed.

// Numbers of the schemas Message.fbs and Schema.fbs.
const (
	version5      = 4
	headerSchema  = 1
	headerBatch   = 3
	typeInt       = 2
	typeFloat     = 3
	typeBinary    = 4
	typeUTF8      = 5
	typeTimestamp = 10
	unitMillis    = 1
	double        = 2

	align = 8
	// maxRows limits the rows of a batch.
	maxRows = 1 << 16
)

// arrowWriter collects rows of columns. Every row has a value or a null in each column.
type arrowWriter struct {
	cols  []column
	rows  int
	limit int // bytes of a batch
	b     *flatbuffers.Builder
}

// column holds the values of a batch.
type column struct {
	columns.Column
	n, nulls int
	valid    []byte
	offsets  []byte
	data     []byte
}

// newArrowWriter returns a writer whose batches have about limit bytes.
func newArrowWriter(cols []columns.Column, limit int) *arrowWriter {
	w := &arrowWriter{limit: limit, b: flatbuffers.NewBuilder(1 << 10)}
	for _, c := range cols {
		w.cols = append(w.cols, column{Column: c})
	}
	return w
}

func (c *column) isBytes() bool { return c.Kind == columns.Binary || c.Kind == columns.UTF8 }

// add ends a row.
func (c *column) add(valid bool) {
	if c.n%8 == 0 {
		c.valid = append(c.valid, 0)
	}
	if valid {
		c.valid[c.n/8] |= 1 << (c.n % 8)
	} else {
		c.nulls++
	}
	c.n++
	if c.isBytes() {
		c.offsets = binary.LittleEndian.AppendUint32(c.offsets, uint32(len(c.data)))
	}
}

// Bytes adds a byte string to n rows of a column.
func (w *arrowWriter) Bytes(col int, v []byte, n int) {
	for c := &w.cols[col]; n > 0; n-- {
		c.data = append(c.data, v...)
		c.add(true)
	}
}

// Int adds an integer to n rows of a column.
func (w *arrowWriter) Int(col int, v int64, n int) {
	for c := &w.cols[col]; n > 0; n-- {
		c.data = binary.LittleEndian.AppendUint64(c.data, uint64(v))
		c.add(true)
	}
}

// Float adds a number to a row of a column.
func (w *arrowWriter) Float(col int, v float64) { w.Int(col, int64(math.Float64bits(v)), 1) }

// Null leaves n rows of a column null.
func (w *arrowWriter) Null(col, n int) {
	for c := &w.cols[col]; n > 0; n-- {
		if !c.isBytes() {
			c.data = binary.LittleEndian.AppendUint64(c.data, 0)
		}
		c.add(false)
	}
}

// Full ends n rows, and reports whether it is time for AppendBatch.
func (w *arrowWriter) Full(n int) bool {
	if w.rows += n; w.rows >= maxRows {
		return true
	}
	size := 0
	for i := range w.cols {
		size += len(w.cols[i].data)
	}
	return size >= w.limit
}

// AppendSchema appends the beginning of the stream.
func (w *arrowWriter) AppendSchema(dst []byte) []byte {
	b := w.b
	b.Reset()
	fields := make([]flatbuffers.UOffsetT, len(w.cols))
	for i := range w.cols {
		fields[i] = w.field(&w.cols[i])
	}
	b.StartVector(flatbuffers.SizeUOffsetT, len(fields), flatbuffers.SizeUOffsetT)
	for i := range fields {
		b.PrependUOffsetT(fields[len(fields)-1-i])
	}
	list := b.EndVector(len(fields))
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, list, 0)
	return w.message(dst, headerSchema, b.EndObject(), 0)
}

// field appends the description of a column.
func (w *arrowWriter) field(c *column) flatbuffers.UOffsetT {
	b := w.b
	name := b.CreateString(c.Name)
	typ, t := w.typeOf(c.Kind)
	b.StartVector(flatbuffers.SizeUOffsetT, 0, flatbuffers.SizeUOffsetT)
	children := b.EndVector(0)
	b.StartObject(7)
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependBoolSlot(1, c.Optional, false)
	b.PrependByteSlot(2, typ, 0)
	b.PrependUOffsetTSlot(3, t, 0)
	b.PrependUOffsetTSlot(5, children, 0)
	return b.EndObject()
}

// typeOf appends a type and returns its number, too.
func (w *arrowWriter) typeOf(k columns.Kind) (byte, flatbuffers.UOffsetT) {
	b := w.b
	switch k {
	case columns.Integer:
		b.StartObject(2)
		b.PrependInt32Slot(0, 64, 0)
		b.PrependBoolSlot(1, true, false)
		return typeInt, b.EndObject()
	case columns.Number:
		b.StartObject(1)
		b.PrependInt16Slot(0, double, 0)
		return typeFloat, b.EndObject()
	case columns.Timestamp:
		zone := b.CreateString("UTC")
		b.StartObject(2)
		b.PrependInt16Slot(0, unitMillis, 0)
		b.PrependUOffsetTSlot(1, zone, 0)
		return typeTimestamp, b.EndObject()
	case columns.UTF8:
		b.StartObject(0)
		return typeUTF8, b.EndObject()
	}
	b.StartObject(0)
	return typeBinary, b.EndObject()
}

// message appends a message with a body of n bytes, which the caller appends.
func (w *arrowWriter) message(dst []byte, kind byte, header flatbuffers.UOffsetT, n int) []byte {
	b := w.b
	b.StartObject(5)
	b.PrependInt16Slot(0, version5, 0)
	b.PrependByteSlot(1, kind, 0)
	b.PrependUOffsetTSlot(2, header, 0)
	b.PrependInt64Slot(3, int64(n), 0)
	b.Finish(b.EndObject())
	meta := b.FinishedBytes()
	size := padded(len(meta))
	dst = binary.LittleEndian.AppendUint32(dst, math.MaxUint32)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	return appendPadded(dst, meta)
}

func padded(n int) int { return (n + align - 1) / align * align }

func appendPadded(dst, b []byte) []byte {
	var zeros [align]byte
	return append(append(dst, b...), zeros[:padded(len(b))-len(b)]...)
}

// buffers returns the buffers of a column. Without nulls it needs no bitmap.
func (c *column) buffers() [][]byte {
	valid := c.valid
	if c.nulls == 0 {
		valid = nil
	}
	if !c.isBytes() {
		return [][]byte{valid, c.data}
	}
	return [][]byte{valid, c.offsets, c.data}
}

// AppendBatch appends the rows, if any, and forgets them.
func (w *arrowWriter) AppendBatch(dst []byte) []byte {
	if w.rows == 0 {
		return dst
	}
	var all [][]byte
	total := 0
	for i := range w.cols {
		c := &w.cols[i]
		if c.isBytes() { // a batch begins with offset 0
			c.offsets = append(c.offsets, 0, 0, 0, 0)
			copy(c.offsets[4:], c.offsets)
			clear(c.offsets[:4])
		}
		all = append(all, c.buffers()...)
	}
	for _, buf := range all {
		total += padded(len(buf))
	}
	b := w.b
	b.Reset()
	b.StartVector(2*flatbuffers.SizeInt64, len(all), flatbuffers.SizeInt64)
	for i, end := len(all)-1, total; i >= 0; i-- {
		end -= padded(len(all[i]))
		b.PrependInt64(int64(len(all[i])))
		b.PrependInt64(int64(end))
	}
	buffers := b.EndVector(len(all))
	b.StartVector(2*flatbuffers.SizeInt64, len(w.cols), flatbuffers.SizeInt64)
	for i := len(w.cols) - 1; i >= 0; i-- {
		b.PrependInt64(int64(w.cols[i].nulls))
		b.PrependInt64(int64(w.cols[i].n))
	}
	nodes := b.EndVector(len(w.cols))
	b.StartObject(4)
	b.PrependInt64Slot(0, int64(w.rows), 0)
	b.PrependUOffsetTSlot(1, nodes, 0)
	b.PrependUOffsetTSlot(2, buffers, 0)
	dst = w.message(dst, headerBatch, b.EndObject(), total)
	for _, buf := range all {
		dst = appendPadded(dst, buf)
	}
	w.reset()
	return dst
}

// reset forgets the rows. Buffers that a large value made are freed.
func (w *arrowWriter) reset() {
	w.rows = 0
	for i := range w.cols {
		c := &w.cols[i]
		if cap(c.data) > 2*w.limit {
			c.data = nil
		}
		c.n, c.nulls, c.valid, c.offsets, c.data = 0, 0, c.valid[:0], c.offsets[:0], c.data[:0]
	}
}

// AppendEnd appends the end of the stream.
func (w *arrowWriter) AppendEnd(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.MaxUint32)
}
