package inspect

import (
	"kvferry/format"
)

// seekBytes is about the number of bytes of a source that are read in the time of a seek to a span.
const seekBytes = 64 << 10

// Seeks reports whether a scan reads only the rows of some spans of keys.
func (s *Scan) Seeks() bool { return s.spans() != nil }

// spans returns the spans that hold the keys of the selection; nil: all keys. A file has no order of keys: it is read as
// a whole.
func (s *Scan) spans() []format.Span {
	if _, file := format.As[format.Sectioned](s.Source); file {
		return nil
	}
	return s.Selected().Spans()
}

// limited limits a part to these spans; nil: all keys. It reads the keys between two spans where seeks would take longer.
func limited(p Part, keys []format.Span) Part {
	if keys == nil {
		return p
	}
	p.Spans = format.Join(format.Intersect(keys, []format.Span{p.Span}), int(p.Bytes/seekBytes))
	if format.Lookups(p.Spans) {
		p.Bytes = min(p.Bytes, int64(len(p.Spans))*seekBytes)
	}
	return p
}
