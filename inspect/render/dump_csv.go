package render

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// csvHead lists the columns. Each has one meaning, and a cell is empty if its column does not apply
// to the line:
//
//	expire_at_ms        when the key expires; empty: never
//	index               of an element in a list, from 0
//	id                  of an entry in a stream, which has a line for each of its fields
//	field               of a hash or a stream entry; of type other the server's name of the type
//	value               of a string, field or list element; the raw bytes of type other
//	member, score       of a set or zset
//	field_expire_at_ms  when the field expires; empty: never
//
// Consumer groups of streams are left out.
const csvHead = "db,type,key,expire_at_ms,index,id,field,value,member,score,field_expire_at_ms" + lineEnd

// csvKeys lists the columns without values.
const csvKeys = "db,type,key,expire_at_ms,elements,bytes" + lineEnd

// lineEnd is the line ending of RFC 4180.
const lineEnd = "\r\n"

// CSV encodes records as comma-separated values (RFC 4180), one line per element. Bytes that are not
// UTF-8, or text that starts with "base64:", are written as base64: and their encoding.
type CSV struct {
	Base64   bool // write every key, field, member and value as plain base64
	KeysOnly bool
	// Safe puts a ' before cells that a spreadsheet would read as a formula.
	Safe bool

	spill bufpool.Spill
	typ   record.Type
	start []byte // the columns that start every line of a record
	n     int64
}

// SpillTo makes the encoder write large cells in pieces.
func (e *CSV) SpillTo(s bufpool.Spill) { e.spill = s }

// AppendHead appends the names of the columns.
func (e *CSV) AppendHead(dst []byte) []byte {
	if e.KeysOnly {
		return append(dst, csvKeys...)
	}
	return append(dst, csvHead...)
}

// AppendBegin starts a record.
func (e *CSV) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	e.typ, e.n = h.Type, 0
	spill := e.spill
	e.spill = nil // keep the key in start: every line of the record repeats it
	e.start = append(e.quote(e.start[:0], []byte(h.DB)), ',')
	e.start = append(append(e.start, h.Type.String()...), ',')
	e.start = append(e.text(e.start, h.Key), ',')
	e.start = append(appendTime(e.start, h.ExpireMS), ',')
	e.spill = spill
	return dst, nil
}

// appendTime appends a time in milliseconds. It appends no text for 0, which means never.
func appendTime(dst []byte, ms int64) []byte {
	if ms == 0 {
		return dst
	}
	return strconv.AppendInt(dst, ms, 10)
}

// AppendElement appends the line of an element.
func (e *CSV) AppendElement(dst []byte, el *record.Element) ([]byte, error) {
	switch {
	case el.Kind != record.Entry: // consumer groups have no columns
		return dst, nil
	case e.typ == record.Stream:
		return e.entry(dst, el)
	}
	dst = append(dst, e.start...)
	switch e.typ {
	case record.Hash, record.Other:
		dst = e.text(append(dst, ",,"...), el.Name)
		dst = e.text(append(dst, ','), el.Value)
		dst = appendTime(append(dst, ",,,"...), el.ExpireMS)
	case record.List:
		dst = strconv.AppendInt(dst, e.n, 10)
		dst = e.text(append(dst, ",,,"...), el.Value)
		dst = append(dst, ",,,"...)
	case record.Set, record.ZSet:
		dst = append(e.text(append(dst, ",,,,"...), el.Name), ',')
		if e.typ == record.ZSet {
			dst = jsonl.AppendScore(dst, el.Score)
		}
		dst = append(dst, ',')
	default:
		dst = e.text(append(dst, ",,,"...), el.Value)
		dst = append(dst, ",,,"...)
	}
	e.n++
	return append(dst, lineEnd...), nil
}

// entry appends a line for each pair of a stream entry.
func (e *CSV) entry(dst []byte, el *record.Element) ([]byte, error) {
	for packed := el.Value; ; {
		var err error
		if dst, err = jsonl.AppendID(append(append(dst, e.start...), ','), el.Name); err != nil {
			return dst, err
		}
		e.n++
		if len(packed) == 0 {
			return append(dst, ",,,,,"+lineEnd...), nil
		}
		field, value, rest, err := record.DecodePair(packed)
		if err != nil {
			return dst, err
		}
		dst = append(e.text(append(dst, ','), field), ',')
		dst = append(e.text(dst, value), ",,,"+lineEnd...)
		if packed = rest; len(packed) == 0 {
			return dst, nil
		}
	}
}

// AppendSize appends the line of a record without its value.
func (e *CSV) AppendSize(dst []byte, elements, bytes int64) []byte {
	e.n++
	dst = strconv.AppendInt(append(dst, e.start...), elements, 10)
	dst = strconv.AppendInt(append(dst, ','), bytes, 10)
	return append(dst, lineEnd...)
}

// AppendEnd ends a record. A record without elements gets one line.
func (e *CSV) AppendEnd(dst []byte) ([]byte, error) {
	if e.n > 0 {
		return dst, nil
	}
	return append(append(dst, e.start...), ",,,,,,"+lineEnd...), nil
}

// AppendTail returns dst: CSV has no tail.
func (e *CSV) AppendTail(dst []byte) []byte { return dst }

func (e *CSV) text(dst, b []byte) []byte {
	switch {
	case e.Base64:
		return e.spill.AppendBase64(dst, b)
	case !utf8.Valid(b) || bytes.HasPrefix(b, []byte(jsonl.Base64Prefix)):
		return e.spill.AppendBase64(append(dst, jsonl.Base64Prefix...), b)
	}
	return e.quote(dst, b)
}

// formula reports whether a spreadsheet would read a cell as a formula.
func formula(b []byte) bool { return len(b) > 0 && strings.IndexByte("=+-@\t\r", b[0]) >= 0 }

// quote puts a cell into quotes when it needs them.
func (e *CSV) quote(dst, b []byte) []byte {
	plain := bytes.IndexByte(b, ',') < 0 && bytes.IndexByte(b, '"') < 0 && bytes.IndexByte(b, '\n') < 0 &&
		bytes.IndexByte(b, '\r') < 0
	if !plain {
		dst = append(dst, '"')
	}
	if e.Safe && formula(b) {
		dst = append(dst, '\'')
	}
	if plain {
		return e.spill.Append(dst, b)
	}
	for e.spill.Long(b) {
		dst, b = e.spill(appendQuoted(dst, b[:bufpool.Piece])), b[bufpool.Piece:]
	}
	return append(appendQuoted(dst, b), '"')
}

// appendQuoted appends b with its quotes doubled.
func appendQuoted(dst, b []byte) []byte {
	for _, c := range b {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return dst
}
