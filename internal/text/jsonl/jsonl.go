// Package jsonl writes records as JSON lines, the format of `kvferry dump --format jsonl`:
//
//	{"db":"0","type":"zset","key":"board","expire_at_ms":0,"value":[["alice","1.5"]]}
//
// The value of a string is a string, of a hash [[field,value],…], of a list or set […], of a zset [[member,score],…]
// and of a stream [[id,[[field,value],…]],…]. A hash field that expires is [field,value,expire_at_ms]. A record of
// type other has its raw bytes as value, and "native" is the server's name of the type. A keyless record, which is a
// library of functions or auxiliary data of a module, has "keyless" after "key": "function" or "module-aux". Its key
// is its name. A stream with consumer groups continues with
//
//	,"groups":[{"name":"g","last_id":"5-1","entries_read":2,"consumers":["c"],"pending":[["5-1","c",delivered_ms,count]]}]
//
// where entries_read is null if unknown, and the consumer is null if the entry belongs to none. Valid UTF-8 becomes a
// JSON string, other bytes become {"base64":"…"}. The encoder appends bytes by hand and allocates nothing per value.
//
// With Objects, a hash is {field:value}, where a field that expires is {"value":…,"expire_at":…}, a zset is
// {member:score}, and "expire_at" is a time in ISO 8601 or null. A name that is not UTF-8 is "base64:…".
package jsonl

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/escape"
	"kvferry/record"
)

// Encoder writes records to a buffer, one after the other.
type Encoder struct {
	// Base64 writes every key, field, member and value as a plain base64 string.
	Base64 bool
	// KeysOnly omits the values; AppendSize writes their size instead.
	KeysOnly bool
	// Objects writes hashes and sorted sets as objects, and times in ISO 8601.
	Objects bool

	spill bufpool.Spill
	typ   record.Type
	count int
	kind  record.Kind // of the previous element
}

// SpillTo makes the encoder write out large values in pieces, together with the buffer before them.
func (e *Encoder) SpillTo(s bufpool.Spill) { e.spill = s }

// AppendBegin appends the start of a record.
func (e *Encoder) AppendBegin(dst []byte, h *record.Header) []byte {
	e.typ, e.count, e.kind = h.Type, 0, record.Entry
	dst = append(dst, `{"db":`...)
	dst = AppendName(dst, h.DB)
	dst = append(dst, `,"type":"`...)
	dst = append(dst, h.Type.String()...)
	dst = append(dst, `","key":`...)
	dst = e.AppendText(dst, h.Key)
	dst = AppendKeyless(dst, h.Keyless)
	if e.Objects {
		dst = appendExpiry(dst, h.ExpireMS)
	} else {
		dst = append(dst, `,"expire_at_ms":`...)
		dst = strconv.AppendInt(dst, h.ExpireMS, 10)
	}
	if e.KeysOnly {
		return dst
	}
	switch h.Type {
	case record.String:
		return append(dst, `,"value":`...)
	case record.Other:
		return append(dst, `,"native":`...)
	}
	if e.object() {
		return append(dst, `,"value":{`...)
	}
	return append(dst, `,"value":[`...)
}

// AppendKeyless appends the kind of a keyless record, such as ,"keyless":"function", and nothing for a record with a
// key.
func AppendKeyless(dst []byte, k record.Keyless) []byte {
	if k == record.Keyed {
		return dst
	}
	return append(append(append(dst, `,"keyless":"`...), k.String()...), '"')
}

// AppendSize appends the size of a record whose value is omitted: its number of elements, and the bytes of its key
// and elements.
func (e *Encoder) AppendSize(dst []byte, elements, bytes int64) []byte {
	dst = strconv.AppendInt(append(dst, `,"elements":`...), elements, 10)
	return strconv.AppendInt(append(dst, `,"bytes":`...), bytes, 10)
}

// AppendElement appends the next element of the record. It returns an error if a stream entry cannot be decoded.
func (e *Encoder) AppendElement(dst []byte, el *record.Element) ([]byte, error) {
	if el.Kind != record.Entry {
		return e.appendGrouped(dst, el)
	}
	if e.count > 0 {
		dst = append(dst, ',')
	}
	e.count++
	switch e.typ {
	case record.Hash:
		if e.Objects {
			return e.appendMember(dst, el), nil
		}
		if el.ExpireMS != 0 {
			return e.appendExpiring(dst, el), nil
		}
		return e.appendPair(dst, el.Name, el.Value), nil
	case record.Other: // further parts of a value follow the first
		if e.count > 1 {
			dst = fmt.Appendf(dst, `"part%d":`, e.count-1)
			return e.AppendText(dst, el.Value), nil
		}
		dst = append(e.AppendText(dst, el.Name), `,"value":`...)
		return e.AppendText(dst, el.Value), nil
	case record.Set:
		return e.AppendText(dst, el.Name), nil
	case record.ZSet:
		if e.Objects {
			return e.appendScored(dst, el), nil
		}
		dst = append(dst, '[')
		dst = e.AppendText(dst, el.Name)
		dst = append(dst, `,"`...)
		dst = AppendScore(dst, el.Score)
		return append(dst, `"]`...), nil
	case record.Stream:
		return e.appendEntry(dst, el)
	}
	return e.AppendText(dst, el.Value), nil
}

// AppendEnd appends the end of the record and a newline.
func (e *Encoder) AppendEnd(dst []byte) []byte {
	if !e.KeysOnly && e.typ != record.String && e.typ != record.Other {
		dst = e.closeGroup(dst)
		if e.object() {
			dst = append(dst, '}')
		} else {
			dst = append(dst, ']')
		}
	}
	return append(dst, "}\n"...)
}

// object reports whether the value of the record is an object.
func (e *Encoder) object() bool { return e.Objects && (e.typ == record.Hash || e.typ == record.ZSet) }

func (e *Encoder) appendExpiring(dst []byte, el *record.Element) []byte {
	dst = e.appendPair(dst, el.Name, el.Value)
	dst = strconv.AppendInt(append(dst[:len(dst)-1], ','), el.ExpireMS, 10)
	return append(dst, ']')
}

func (e *Encoder) appendPair(dst, name, value []byte) []byte {
	dst = append(dst, '[')
	dst = e.AppendText(dst, name)
	dst = append(dst, ',')
	dst = e.AppendText(dst, value)
	return append(dst, ']')
}

// appendEntry appends an entry of a stream: [id,[[field,value],…]].
func (e *Encoder) appendEntry(dst []byte, el *record.Element) ([]byte, error) {
	dst = append(dst, `["`...)
	dst, err := AppendID(dst, el.Name)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `",[`...)
	for packed := el.Value; len(packed) > 0; {
		field, value, rest, err := record.DecodePair(packed)
		if err != nil {
			return dst, err
		}
		if len(packed) < len(el.Value) {
			dst = append(dst, ',')
		}
		dst = e.appendPair(dst, field, value)
		packed = rest
	}
	return append(dst, "]]"...), nil
}

// AppendID appends the id of a stream entry in the form ms-seq.
func AppendID(dst, id []byte) ([]byte, error) {
	if len(id) != 16 {
		return dst, record.Short(0, "stream id", 16, len(id))
	}
	dst = strconv.AppendUint(dst, binary.BigEndian.Uint64(id), 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, binary.BigEndian.Uint64(id[8:]), 10), nil
}

// AppendScore appends the shortest text that reads back as the same score; infinities are inf and -inf.
func AppendScore(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e17) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// AppendName appends the name of a database as a JSON value. Names that are not UTF-8 are encoded like keys.
func AppendName(dst []byte, name string) []byte {
	var text Encoder
	return text.AppendText(dst, []byte(name))
}

// AppendText appends bytes as a JSON value.
func (e *Encoder) AppendText(dst, b []byte) []byte {
	if e.Base64 {
		return e.appendBase64(dst, b)
	}
	if !utf8.Valid(b) {
		dst = append(dst, `{"base64":`...)
		dst = e.appendBase64(dst, b)
		return append(dst, '}')
	}
	dst = append(dst, '"')
	for e.spill.Long(b) {
		n := bufpool.Piece
		for !utf8.RuneStart(b[n]) {
			n--
		}
		dst, b = e.spill(appendEscaped(dst, b[:n])), b[n:]
	}
	return append(appendEscaped(dst, b), '"')
}

func (e *Encoder) appendBase64(dst, b []byte) []byte {
	return append(e.spill.AppendBase64(append(dst, '"'), b), '"')
}

// appendEscaped appends valid UTF-8 in the form of a JSON string, without the quotes.
func appendEscaped(dst, s []byte) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < 0x7f {
			continue
		}
		if c > 0x7f {
			if r, n := activeAt(s[i:]); n > 0 {
				dst = append(dst, s[start:i]...)
				dst = escape.AppendJSON(dst, r)
				i += n - 1
				start = i + 1
			}
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		start = i + 1
	}
	return append(dst, s[start:]...)
}

const hex = "0123456789abcdef"

// activeAt decodes the first character of valid UTF-8. It returns the character and its length if the character is
// active (see escape.Active), and n = 0 otherwise.
func activeAt(s []byte) (r rune, n int) {
	switch s[0] {
	case 0xc2, 0xd8, 0xe1, 0xe2, 0xef, 0xf0, 0xf3: // the first bytes of active characters
		if r, n = utf8.DecodeRune(s); escape.Active(r) {
			return r, n
		}
	}
	return 0, 0
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
}

// Text holds any bytes, and is encoded in JSON like AppendText does.
type Text string

// MarshalJSON writes the text.
func (t Text) MarshalJSON() ([]byte, error) {
	var e Encoder
	return e.AppendText(nil, []byte(t)), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Text) UnmarshalJSON(data []byte) error {
	var plain string
	err := json.Unmarshal(data, &plain)
	if err == nil {
		*t = Text(plain)
		return nil
	}
	var coded struct{ Base64 *string }
	if json.Unmarshal(data, &coded) != nil || coded.Base64 == nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(*coded.Base64)
	*t = Text(b)
	return err
}
