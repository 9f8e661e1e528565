package inspect

import (
	"context"

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

// cut limits a part to these spans; nil: all keys. It reads the keys between two spans where seeks would take longer.
func (p Part) cut(keys []format.Span) Part {
	if keys == nil {
		return p
	}
	p.spans = format.Join(format.Intersect(keys, []format.Span{p.Span}), int(p.Bytes/seekBytes))
	if format.Lookups(p.spans) {
		p.Bytes = min(p.Bytes, int64(len(p.spans))*seekBytes)
	}
	return p
}

// records returns a reader of the records of a part, of which it seeks the spans.
func (s *Scan) records(ctx context.Context, p Part) (record.Reader, error) {
	env := s.Env()
	if p.spans == nil {
		return s.Source.Records(ctx, p.DB, p.Types, p.Span, env)
	}
	readers := make([]func() (record.Reader, error), len(p.spans))
	for i, span := range p.spans {
		readers[i] = func() (record.Reader, error) { return s.Source.Records(ctx, p.DB, p.Types, span, env) }
	}
	return record.Concat(readers...), nil
}
