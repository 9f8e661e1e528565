// Package jsonl writes records as JSON lines, the form of `kvferry dump --format jsonl`:
//
//	{"db":"0","type":"zset","key":"board","expire_at_ms":0,"value":[["alice","1.5"]]}
//
// The value is a string of a string, [[field,value],…] of a hash, […] of a list and a set,
// [[member,score],…] of a zset and [[id,[[field,value],…]],…] of a stream; of type other it is the raw bytes, and
// "native" the server's name of the type. What has no key, a library of functions or what a module keeps beside its values,
// has "keyless" behind "key", which is its name then: "function" or "module-aux". A field that expires is [field,value,expire_at_ms]. A stream with consumer
// groups goes on with
//
//	,"groups":[{"name":"g","last_id":"5-1","entries_read":2,"consumers":["c"],"pending":[["5-1","c",delivered_ms,count]]}]
//
// where entries_read is null when it is unknown, and the consumer is when an entry belongs to none. Text that is valid UTF-8
// is a JSON string, other bytes are {"base64":"…"}. The bytes are appended by hand: nothing is
// allocated per value.
package jsonl

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/escape"
	"kvferry/record"
)

// Encoder writes one record after the other into a buffer.
type Encoder struct {
	// Base64 writes every key, field, member and value as a plain base64 string.
	Base64 bool
	// KeysOnly leaves the values out; AppendSize says how large they are.
	KeysOnly bool

	spill bufpool.Spill
	typ   record.Type
	count int
	kind  record.Kind // of the last element
}

// SpillTo has the text of large values written out in pieces, with what is in the buffer before it.
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
	dst = append(dst, `,"expire_at_ms":`...)
	dst = strconv.AppendInt(dst, h.ExpireMS, 10)
	if e.KeysOnly {
		return dst
	}
	switch h.Type {
	case record.String:
		return append(dst, `,"value":`...)
	case record.Other:
		return append(dst, `,"native":`...)
	}
	return append(dst, `,"value":[`...)
}

// AppendKeyless appends what has no key: ,"keyless":"function". It appends nothing for a key.
func AppendKeyless(dst []byte, k record.Keyless) []byte {
	if k == record.Keyed {
		return dst
	}
	return append(append(append(dst, `,"keyless":"`...), k.String()...), '"')
}

// AppendSize appends how many elements a record has whose value is left out, and how many bytes its key and they take.
func (e *Encoder) AppendSize(dst []byte, elements, bytes int64) []byte {
	dst = strconv.AppendInt(append(dst, `,"elements":`...), elements, 10)
	return strconv.AppendInt(append(dst, `,"bytes":`...), bytes, 10)
}

// AppendElement appends the next element of the record. The pairs of a stream entry that cannot be
// unpacked are an error.
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
		if el.ExpireMS != 0 {
			return e.appendExpiring(dst, el), nil
		}
		return e.appendPair(dst, el.Name, el.Value), nil
	case record.Other: // the parts of a value that has several come after it
		if e.count > 1 {
			dst = fmt.Appendf(dst, `"part%d":`, e.count-1)
			return e.AppendText(dst, el.Value), nil
		}
		dst = append(e.AppendText(dst, el.Name), `,"value":`...)
		return e.AppendText(dst, el.Value), nil
	case record.Set:
		return e.AppendText(dst, el.Name), nil
	case record.ZSet:
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

// AppendEnd appends the end of the record and of its line.
func (e *Encoder) AppendEnd(dst []byte) []byte {
	if !e.KeysOnly && e.typ != record.String && e.typ != record.Other {
		dst = e.closeGroup(dst)
		dst = append(dst, ']')
	}
	return append(dst, "}\n"...)
}

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

// AppendID appends the id of a stream entry as people write it: ms-seq.
func AppendID(dst, id []byte) ([]byte, error) {
	if len(id) != 16 {
		return dst, record.Short(0, "stream id", 16, len(id))
	}
	dst = strconv.AppendUint(dst, binary.BigEndian.Uint64(id), 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, binary.BigEndian.Uint64(id[8:]), 10), nil
}

// AppendScore appends a score in its shortest form that reads back as the same number; inf and -inf.
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

// AppendName appends the name of a database as a JSON value: what is not UTF-8 as keys are.
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

// appendEscaped appends valid UTF-8 as what stands between the quotes of a JSON string.
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
				dst = append(dst, '\\', 'u', hex[r>>12], hex[r>>8&0xF], hex[r>>4&0xF], hex[r&0xF])
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

// activeAt returns the character that valid UTF-8 begins with and its length when it acts instead of being seen (see
// visible.Active), which a terminal must not get raw.
func activeAt(s []byte) (r rune, n int) {
	switch s[0] {
	case 0xc2, 0xd8: // U+0080 to U+00BF, U+0600 to U+063F
		r, n = rune(s[0]&0x1f)<<6|rune(s[1]&0x3f), 2
	case 0xe2: // U+2000 to U+2FFF
		r, n = rune(s[0]&0xf)<<12|rune(s[1]&0x3f)<<6|rune(s[2]&0x3f), 3
	default:
		return 0, 0
	}
	if !escape.Active(r) {
		return 0, 0
	}
	return r, n
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
