package patch

import (
	"bytes"
	"fmt"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Placeholders for the value in an element's line. Text cannot contain them, because quotes in text are escaped.
const (
	noValue = `"value":""`
	noEntry = `"entry":[["",""]]`
)

// long writes the line of an element with a large value, in pieces.
func (w *Writer) long(e *record.Element) error {
	short, hole, fill := *e, noValue, w.value
	if w.typ == record.Stream {
		short.Value, hole, fill = record.AppendPair(nil, nil, nil), noEntry, w.entry
	} else {
		short.Value = nil
	}
	l := line{Op: set}
	if err := l.encodeElement(w.typ, &short); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := newLines(&b).Encode(&l); err != nil {
		return err
	}
	before, after, ok := bytes.Cut(b.Bytes(), []byte(hole))
	if !ok {
		return fmt.Errorf("an element of type %s has no value", w.typ)
	}
	var failed error
	spill := func(text []byte) []byte {
		if failed == nil {
			_, failed = w.both.Write(text)
		}
		return text[:0]
	}
	var text jsonl.Encoder
	text.SpillTo(spill)
	dst, err := fill(append([]byte(nil), before...), &text, e.Value)
	if err != nil {
		return err
	}
	spill(append(dst, after...))
	return failed
}

// value appends the value of an element of any type but a stream.
func (w *Writer) value(dst []byte, text *jsonl.Encoder, value []byte) ([]byte, error) {
	return text.AppendText(append(dst, noValue[:len(noValue)-2]...), value), nil
}

// entry appends the fields and values of a stream entry.
func (w *Writer) entry(dst []byte, text *jsonl.Encoder, packed []byte) ([]byte, error) {
	dst = append(dst, noEntry[:len(noEntry)-len(`["",""]]`)]...)
	for first := true; len(packed) > 0; first = false {
		field, value, rest, err := record.DecodePair(packed)
		if err != nil {
			return dst, err
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = text.AppendText(append(dst, '['), field)
		dst = append(text.AppendText(append(dst, ','), value), ']')
		packed = rest
	}
	return append(dst, ']'), nil
}
