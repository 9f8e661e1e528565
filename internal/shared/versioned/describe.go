package versioned

import (
	"kvferry/format"
	"kvferry/internal/text/jsonl"
)

// IDText formats the id of a stream entry as ms-seq.
func IDText(id []byte) string {
	text, err := jsonl.AppendID(nil, id)
	if err != nil {
		return ""
	}
	return string(text)
}

// DescribeIDs adds the three ids of a stream's meta row, which start at off in the value.
func DescribeIDs(d *format.Describer, s *StreamMeta, off int) {
	for i, id := range []ID{s.First, s.Last, s.MaxDeleted} {
		d.Field([]string{"first id", "last id", "max deleted id"}[i], IDText(id[:]), "value", off+16*i, 16)
	}
}

// DescribeEntry adds the fields of the value of a stream's entry.
func DescribeEntry(d *format.Describer, value []byte) {
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
