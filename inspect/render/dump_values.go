package render

import (
	"fmt"
	"strconv"

	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Values prints records for people: a line about the record, then a line per element, with texts as in JSON.
type Values struct {
	Lines
	typ record.Type
	n   int64
}

// AppendBegin appends the line about the record.
func (e *Values) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	e.typ, e.n = h.Type, 0
	name := h.Type.String()
	if h.Keyless != record.Keyed {
		name = h.Keyless.String()
	}
	return fmt.Appendf(dst, "%s %s, database %s, %s\n", name, escape.Text(string(h.Key)), escape.Text(h.DB), expiryOf(h)), nil
}

// expiryOf says when a record expires.
func expiryOf(h *record.Header) string {
	switch {
	case h.ExpireMS == 0:
		return "never expires"
	case h.Expired:
		return "expired " + jsonl.TimeText(h.ExpireMS)
	}
	return "expires " + jsonl.TimeText(h.ExpireMS)
}

// AppendElement appends the line of an element.
func (e *Values) AppendElement(dst []byte, el *record.Element) ([]byte, error) {
	dst = append(dst, ' ', ' ')
	var err error
	switch {
	case el.Kind != record.Entry:
		return append(e.AppendText(append(dst, [...]string{"", "group ", "consumer of ", "pending in "}[el.Kind]...), el.Name),
			'\n'), nil
	case e.typ == record.Stream:
		dst, err = e.entry(dst, el)
	case e.typ == record.List:
		dst = e.AppendText(append(strconv.AppendInt(dst, e.n, 10), ' ', ' '), el.Value)
	case e.typ == record.ZSet:
		dst = jsonl.AppendScore(append(e.AppendText(dst, el.Name), ' ', ' '), el.Score)
	case e.typ == record.Set:
		dst = e.AppendText(dst, el.Name)
	case e.typ == record.Hash || e.typ == record.Other:
		dst = e.AppendText(append(e.AppendText(dst, el.Name), ' ', ' '), el.Value)
		if el.ExpireMS != 0 {
			dst = fmt.Appendf(dst, "  expires %s", jsonl.TimeText(el.ExpireMS))
		}
	default:
		dst = e.AppendText(dst, el.Value)
	}
	e.n++
	return append(dst, '\n'), err
}

func (e *Values) entry(dst []byte, el *record.Element) ([]byte, error) {
	dst, err := jsonl.AppendID(dst, el.Name)
	for packed := el.Value; err == nil && len(packed) > 0; {
		var field, value []byte
		if field, value, packed, err = record.DecodePair(packed); err == nil {
			dst = e.AppendText(append(e.AppendText(append(dst, ' ', ' '), field), ' '), value)
		}
	}
	return dst, err
}

// AppendEnd appends an empty line.
func (e *Values) AppendEnd(dst []byte) ([]byte, error) { return append(dst, '\n'), nil }

// Raw writes the bytes of values: of a string as they are, of other types each field, member, score and value on a line.
type Raw struct {
	spill bufpool.Spill
	typ   record.Type
}

// SpillTo makes the encoder write large values in pieces.
func (e *Raw) SpillTo(s bufpool.Spill) { e.spill = s }

// AppendHead returns dst.
func (e *Raw) AppendHead(dst []byte) []byte { return dst }

// AppendBegin starts a record.
func (e *Raw) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	e.typ = h.Type
	return dst, nil
}

// AppendElement appends the bytes of an element.
func (e *Raw) AppendElement(dst []byte, el *record.Element) ([]byte, error) {
	switch {
	case el.Kind != record.Entry:
		return dst, nil
	case e.typ == record.String:
		return e.spill.Append(dst, el.Value), nil
	case e.typ == record.List:
		return e.line(dst, el.Value), nil
	case e.typ == record.Set:
		return e.line(dst, el.Name), nil
	case e.typ == record.ZSet:
		return append(jsonl.AppendScore(e.line(dst, el.Name), el.Score), '\n'), nil
	case e.typ == record.Stream:
		return e.entry(dst, el)
	}
	return e.line(e.line(dst, el.Name), el.Value), nil
}

func (e *Raw) line(dst, b []byte) []byte { return append(e.spill.Append(dst, b), '\n') }

func (e *Raw) entry(dst []byte, el *record.Element) ([]byte, error) {
	dst, err := jsonl.AppendID(dst, el.Name)
	dst = append(dst, '\n')
	for packed := el.Value; err == nil && len(packed) > 0; {
		var field, value []byte
		if field, value, packed, err = record.DecodePair(packed); err == nil {
			dst = e.line(e.line(dst, field), value)
		}
	}
	return dst, err
}

// AppendEnd returns dst.
func (e *Raw) AppendEnd(dst []byte) ([]byte, error) { return dst, nil }

// AppendTail returns dst.
func (e *Raw) AppendTail(dst []byte) []byte { return dst }

// Keys lists records without values, one per line.
type Keys struct {
	Names bool // only the keys, in the form of a key file
	Raw
	head record.Header
	key  []byte
}

// AppendHead appends the names of the columns.
func (e *Keys) AppendHead(dst []byte) []byte {
	if e.Names {
		return dst
	}
	return fmt.Appendf(dst, "%-6s %10s %13s  %-20s  %-3s %s\n", "TYPE", "ELEMENTS", "BYTES", "EXPIRES", "DB", "KEY")
}

// AppendBegin starts a record.
func (e *Keys) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	e.key = append(e.key[:0], h.Key...)
	e.head = record.Header{DB: h.DB, Type: h.Type, Key: e.key, ExpireMS: h.ExpireMS}
	return dst, nil
}

// AppendSize appends the line of the record.
func (e *Keys) AppendSize(dst []byte, elements, bytes int64) []byte {
	if e.Names {
		return append(append(dst, filter.KeyText(e.key)...), '\n')
	}
	expires := "never"
	if e.head.ExpireMS != 0 {
		expires = jsonl.TimeText(e.head.ExpireMS)
	}
	return fmt.Appendf(dst, "%-6s %10s %13s  %-20s  %-3s %s\n", e.head.Type, record.Number(elements), record.Number(bytes),
		expires, escape.Text(e.head.DB), escape.Text(string(e.key)))
}
