package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// A table has no more columns than this, whose names have no more bytes than that.
const (
	maxColumns     = 1000
	maxColumnBytes = 1 << 20
)

// Columns collects the names of the fields of hashes. As an encoder it writes no text.
type Columns struct {
	names map[string]struct{}
	key   []byte
	bytes int
}

// Names returns the names in bytewise order.
func (c *Columns) Names() []string { return slices.Sorted(maps.Keys(c.names)) }

// AppendHead starts anew.
func (c *Columns) AppendHead(dst []byte) []byte {
	c.names, c.bytes = map[string]struct{}{}, 0
	return dst
}

// AppendBegin starts a hash.
func (c *Columns) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	c.key = append(c.key[:0], h.Key...)
	return dst, nil
}

// AppendElement notes the name of a field.
func (c *Columns) AppendElement(dst []byte, el *record.Element) ([]byte, error) {
	if _, ok := c.names[string(el.Name)]; ok {
		return dst, nil
	}
	c.bytes += len(el.Name)
	if len(c.names) == maxColumns || c.bytes > maxColumnBytes {
		return dst, fmt.Errorf("more than %d different fields (%s of hash %s is one more), which is too many for columns: "+
			"name some with --columns, choose fewer hashes with --match, or leave out --wide for a line per field",
			len(c.names), record.Quote(el.Name), record.Quote(c.key))
	}
	c.names[string(el.Name)] = struct{}{}
	return dst, nil
}

// AppendEnd ends a hash.
func (c *Columns) AppendEnd(dst []byte) ([]byte, error) { return dst, nil }

// AppendTail returns dst.
func (c *Columns) AppendTail(dst []byte) []byte { return dst }

// wideHead lists the columns before those of fields.
var wideHead = []string{"db", "key", "expire_at"}

// fieldPrefix marks the column of a field whose name is one of wideHead, or begins with it.
const fieldPrefix = "field:"

// Wide encodes hashes as comma-separated values, a line per hash and a column per field. The cell of a field that the
// hash lacks is empty; that of an empty value is "". It holds the cells of a line.
type Wide struct {
	Cells   CSV // writes cells
	Columns []string
	// Chosen leaves out other fields; otherwise they are an error.
	Chosen bool
	// Limit is the largest size of a line.
	Limit int64

	at    map[string]int
	start []byte
	key   []byte
	cells [][2]int // of the columns, in line
	line  []byte
}

// AppendHead appends the names of the columns.
func (e *Wide) AppendHead(dst []byte) []byte {
	e.at, e.cells = map[string]int{}, make([][2]int, len(e.Columns))
	dst = append(dst, strings.Join(wideHead, ",")...)
	for i, name := range e.Columns {
		e.at[name] = i
		if slices.Contains(wideHead, name) || strings.HasPrefix(name, fieldPrefix) {
			name = fieldPrefix + name
		}
		dst = e.Cells.text(append(dst, ','), []byte(name))
	}
	return append(dst, lineEnd...)
}

// AppendBegin starts a hash.
func (e *Wide) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	e.key = append(e.key[:0], h.Key...)
	e.start = append(e.Cells.quote(e.start[:0], []byte(h.DB)), ',')
	e.start = append(e.Cells.text(e.start, h.Key), ',')
	if h.ExpireMS != 0 {
		e.start = jsonl.AppendTime(e.start, h.ExpireMS)
	}
	e.line = e.line[:0]
	clear(e.cells)
	return dst, nil
}

// AppendElement takes the cell of a field.
func (e *Wide) AppendElement(dst []byte, el *record.Element) ([]byte, error) {
	i, ok := e.at[string(el.Name)]
	switch size := len(e.start) + len(e.line) + len(el.Value); {
	case !ok && e.Chosen:
		return dst, nil
	case !ok:
		return dst, fmt.Errorf("hash %s has a field %s that it lacked before: the dataset has changed", record.Quote(e.key),
			record.Quote(el.Name))
	case int64(size) > e.Limit:
		return dst, fmt.Errorf("hash %s makes a line of more than %s bytes: give a larger --memory, choose other --columns, "+
			"or leave out --wide for a line per field", record.Quote(e.key), record.Number(e.Limit))
	}
	from := len(e.line)
	e.line = e.Cells.text(e.line, el.Value)
	if len(el.Value) == 0 {
		e.line = append(e.line, `""`...)
	}
	e.cells[i] = [2]int{from, len(e.line)}
	return dst, nil
}

// AppendEnd appends the line of a hash.
func (e *Wide) AppendEnd(dst []byte) ([]byte, error) {
	dst = append(dst, e.start...)
	for _, c := range e.cells {
		dst = append(append(dst, ','), e.line[c[0]:c[1]]...)
	}
	return append(dst, lineEnd...), nil
}

// AppendTail returns dst: CSV has no tail.
func (e *Wide) AppendTail(dst []byte) []byte { return dst }
