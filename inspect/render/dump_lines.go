package render

import (
	"bytes"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Lines encodes records as JSON lines.
type Lines struct{ jsonl.Encoder }

// AppendHead returns dst: JSON lines have no head.
func (e *Lines) AppendHead(dst []byte) []byte { return dst }

// AppendBegin appends the start of a record.
func (e *Lines) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	return e.Encoder.AppendBegin(dst, h), nil
}

// AppendEnd appends the end of a record and of its line.
func (e *Lines) AppendEnd(dst []byte) ([]byte, error) { return e.Encoder.AppendEnd(dst), nil }

// AppendTail returns dst: JSON lines have no tail.
func (e *Lines) AppendTail(dst []byte) []byte { return dst }

// Document encodes records as one JSON array.
type Document struct {
	Lines
	n int64
}

// AppendHead appends the start of the array.
func (e *Document) AppendHead(dst []byte) []byte {
	e.n = 0
	return append(dst, '[')
}

// AppendBegin appends the start of a record.
func (e *Document) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	if e.n > 0 {
		dst = append(dst, ',')
	}
	e.n++
	return e.Lines.AppendBegin(append(dst, '\n'), h)
}

// AppendEnd appends the end of a record.
func (e *Document) AppendEnd(dst []byte) ([]byte, error) {
	dst, err := e.Lines.AppendEnd(dst)
	return bytes.TrimSuffix(dst, []byte("\n")), err
}

// AppendTail appends the end of the array.
func (e *Document) AppendTail(dst []byte) []byte { return append(dst, "\n]\n"...) }
