package jsonl

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"kvferry/record"
)

// Base64Prefix marks text in base64 where a form has no other mark. Text that begins with it is in base64, too.
const Base64Prefix = "base64:"

// appendName appends bytes as the name of an object's member, which must be a string.
func (e *Encoder) appendName(dst, b []byte) []byte {
	if !e.Base64 && (!utf8.Valid(b) || bytes.HasPrefix(b, []byte(Base64Prefix))) {
		dst = append(append(dst, '"'), Base64Prefix...)
		return append(base64.StdEncoding.AppendEncode(dst, b), '"', ':')
	}
	return append(e.AppendText(dst, b), ':')
}

// appendMember appends a field of a hash as a member of an object. A field that expires has its value in an object of
// its own.
func (e *Encoder) appendMember(dst []byte, el *record.Element) []byte {
	dst = e.appendName(dst, el.Name)
	if el.ExpireMS == 0 {
		return e.AppendText(dst, el.Value)
	}
	dst = e.AppendText(append(dst, `{"value":`...), el.Value)
	return append(appendExpiry(dst, el.ExpireMS), '}')
}

// appendExpiry appends the member for an expiry; null means never.
func appendExpiry(dst []byte, ms int64) []byte {
	dst = append(dst, `,"expire_at":`...)
	if ms == 0 {
		return append(dst, "null"...)
	}
	return append(AppendTime(append(dst, '"'), ms), '"')
}

// appendScored appends a member of a sorted set as a member of an object. JSON has no infinities: these are strings.
func (e *Encoder) appendScored(dst []byte, el *record.Element) []byte {
	dst = e.appendName(dst, el.Name)
	if math.IsInf(el.Score, 0) || math.IsNaN(el.Score) {
		return append(AppendScore(append(dst, '"'), el.Score), '"')
	}
	return AppendScore(dst, el.Score)
}

// AppendTime appends Unix milliseconds as a time in ISO 8601, in UTC. Years above 9999 have more digits.
func AppendTime(dst []byte, ms int64) []byte {
	t := time.UnixMilli(ms).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return t.AppendFormat(strconv.AppendInt(dst, int64(y), 10), "-01-02T15:04:05.000Z")
	}
	return t.AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}

// TimeText formats Unix milliseconds for people, without zeros at the end.
func TimeText(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}
