package inspect

import (
	"kvferry/format"
	"kvferry/record"
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

// fewKeys is the number of keys up to which nobody needs to know how large the source is.
const fewKeys = 64

// Size returns the bytes on disk of some types of a database. For a few keys it is 0: an estimate may take longer than
// reading them.
func (s *Scan) Size(db string, types record.TypeSet) int64 {
	if keys := s.spans(); format.Lookups(keys) && len(keys) <= fewKeys {
		return 0
	}
	return s.Source.Size(db, types)
}

// limited limits a part to these spans; nil: all keys. It reads the keys between two spans where seeks would take longer.
func limited(p Part, keys []format.Span) Part {
	if keys == nil {
		return p
	}
	p.Spans = format.Intersect(keys, []format.Span{p.Span})
	if p.Bytes > 0 {
		p.Spans = format.Join(p.Spans, int(p.Bytes/seekBytes))
	}
	if format.Lookups(p.Spans) {
		p.Bytes = min(p.Bytes, int64(len(p.Spans))*seekBytes)
	}
	return p
}
