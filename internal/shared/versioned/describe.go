package versioned

import (
	"errors"

	"kvferry/format"
	"kvferry/internal/text/jsonl"
)

// Describer decodes a row field by field and continues after errors.
type Describer struct{ Row format.Row }

// NewDescriber returns a Describer of an unknown row.
func NewDescriber() Describer {
	return Describer{Row: format.Row{Kind: "unknown", Version: -1, Count: -1}}
}

// Field adds a field that was decoded from n bytes at off in the key or the value.
func (d *Describer) Field(name string, v any, where string, off, n int) {
	d.Row.Fields = append(d.Row.Fields, format.Field{Name: name, Value: v, Where: where, Off: off, Len: n})
}

// Broken adds the bytes of b from off on as undecoded, with the error.
func (d *Describer) Broken(err error, where string, off int, b []byte) {
	d.Row.Err = errors.Join(d.Row.Err, err)
	d.Field("undecoded", b[off:], where, off, len(b)-off)
}

// IDText formats the id of a stream entry as ms-seq.
func IDText(id []byte) string {
	text, err := jsonl.AppendID(nil, id)
	if err != nil {
		return ""
	}
	return string(text)
}

// DescribeIDs adds the three ids of a stream's meta row, which start at off in the value.
func DescribeIDs(d *Describer, s *StreamMeta, off int) {
	for i, id := range []ID{s.First, s.Last, s.MaxDeleted} {
		d.Field([]string{"first id", "last id", "max deleted id"}[i], IDText(id[:]), "value", off+16*i, 16)
	}
}

// DescribeEntry adds the fields of the value of a stream's entry.
func DescribeEntry(d *Describer, value []byte) {
	for off, i := 0, 0; off < len(value); i++ {
		name := []string{"field", "value"}[i%2]
		part, err := decodePart(value, off, name)
		if err != nil {
			d.Broken(err, "value", off, value)
			return
		}
		d.Field(name, part, "value", off, partLen+len(part))
		off += partLen + len(part)
	}
}
