package parquet

import (
	"kvferry/parquet/columns"
	"kvferry/record"
)

// maxBatch is the size of a batch of rows in a stream.
const maxBatch = 4 << 20

// colType is the column of types, which a stream has after those of a file.
const colType = numColumns

// Arrow encodes records as a stream of Arrow batches, with the rows of an export.
type Arrow struct {
	w    *arrowWriter
	rows rows
	text texts
	typ  []byte
	one  [1]record.Element
}

// NewArrow returns an encoder. text is as in ExportOptions; binaryDB declares names of databases as bytes. A
// batch takes at most a sixteenth of the memory.
func NewArrow(text string, binaryDB bool, memory int64) *Arrow {
	cols := append(columnsOf(false, text != ""), columns.Column{Name: "type", Kind: columns.UTF8})
	if binaryDB {
		cols[colDB].Kind = columns.Binary
	}
	a := &Arrow{w: newArrowWriter(cols, int(min(maxBatch, max(memory/16, 64<<10)))), text: texts{mode: text}}
	a.rows = rows{w: a.w, text: &a.text}
	return a
}

// AppendHead appends the schema.
func (a *Arrow) AppendHead(dst []byte) []byte { return a.w.AppendSchema(dst) }

// AppendBegin starts a record. A stream has a row of its own.
func (a *Arrow) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	a.typ = append(a.typ[:0], h.Type.String()...)
	err := a.rows.begin(h)
	if err == nil && h.Type == record.Stream {
		dst = a.ended(dst, 1)
	}
	return dst, err
}

// AppendElement adds an element.
func (a *Arrow) AppendElement(dst []byte, e *record.Element) ([]byte, error) {
	a.one[0] = *e
	n, err := a.rows.elements(a.one[:])
	if err != nil {
		return dst, err
	}
	return a.ended(dst, n), nil
}

// ended ends n rows, and appends a batch if it is full.
func (a *Arrow) ended(dst []byte, n int) []byte {
	a.w.Bytes(colType, a.typ, n)
	if a.w.Full(n) {
		return a.w.AppendBatch(dst)
	}
	return dst
}

// AppendEnd ends a record.
func (a *Arrow) AppendEnd(dst []byte) ([]byte, error) { return dst, nil }

// AppendTail appends the last batch and the end of the stream.
func (a *Arrow) AppendTail(dst []byte) []byte { return a.w.AppendEnd(a.w.AppendBatch(dst)) }

// Replaced returns the number of values that were not UTF-8 and were changed.
func (a *Arrow) Replaced() int64 { return a.text.replaced }
