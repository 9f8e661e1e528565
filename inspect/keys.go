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
	if p.spans == nil {
		return s.Source.Records(ctx, p.DB, p.Types, p.Span, s.Env())
	}
	return s.Spans(ctx, p.DB, p.Types, p.spans, s.Env()), nil
}

// Spans returns a reader of spans of keys, which it opens one after the other.
func (s *Scan) Spans(ctx context.Context, db string, types record.TypeSet, spans []format.Span, env *format.Env) record.Reader {
	readers := make([]func() (record.Reader, error), len(spans))
	for i, span := range spans {
		readers[i] = func() (record.Reader, error) { return s.Source.Records(ctx, db, types, span, env) }
	}
	return record.Concat(readers...)
}
