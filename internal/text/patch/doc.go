// Package patch is the file that brings a server up to date: JSON lines, the first of which says what it is, and the last how it
// ends. Everything between is an operation on a whole key.
//
//	{"kvferry_patch":1,"from":"/data/dump","to":"redis://db1:6379","now_ms":…}
//	{"op":"put","db":"0","type":"hash","key":"h","expire_at_ms":0,"len":1}
//	{"op":"set","field":"f","value":"v"}                 an element of the key that was put last
//	{"op":"expire","db":"0","type":"string","key":"s","expire_at_ms":4102444800000}
//	{"op":"delete","db":"0","type":"list","key":"gone"}
//	{"op":"delete","db":"0","type":"other","key":"FUNCTION lib1","keyless":"function"}
//	{"op":"end","puts":1,"expires":1,"deletes":1,"sha256":"…"}
//
// The sum is of all bytes before the last line. Text is a JSON string, or {"base64":"…"} for bytes that are not UTF-8.
// Applying a file twice is applying it once. docs/diff.md has the fields of each type.
package patch

import (
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Version is that of the files that are written and read.
const Version = 1

// Head is the first line.
type Head struct {
	Version int    `json:"kvferry_patch"`
	From    string `json:"from"` // what the server is to hold
	To      string `json:"to"`   // the server
	NowMS   int64  `json:"now_ms"`
}

// Counts are what a file has.
type Counts struct {
	Puts    int64 `json:"puts"`
	Expires int64 `json:"expires"`
	Deletes int64 `json:"deletes"`
}

// Op is what a line does.
type Op string

// Operations.
const (
	Put    Op = "put"    // the key is what follows, whatever it was
	Expire Op = "expire" // the key has another expiry, and is the same otherwise
	Delete Op = "delete" // the key is no more
	set    Op = "set"
	end    Op = "end"
)

// line is any line but the first.
type line struct {
	Op     Op     `json:"op"`
	DB     *field `json:"db,omitempty"`
	Type   string `json:"type,omitempty"`
	Key    *field `json:"key,omitempty"`
	Bare   string `json:"keyless,omitempty"`
	Expire *int64 `json:"expire_at_ms,omitempty"`
	Len    *int64 `json:"len,omitempty"`
	element
	stream
	*Counts
	SHA256 string `json:"sha256,omitempty"`

	lines *lines // where long fields are
}

// stream is what a stream has besides its elements.
type stream struct {
	Last       string `json:"last_id,omitempty"` // of a group too
	MaxDeleted string `json:"max_deleted_id,omitempty"`
	Added      uint64 `json:"entries_added,omitempty"`
}

// element is what a line says of one.
type element struct {
	Field  *field     `json:"field,omitempty"`
	Member *field     `json:"member,omitempty"`
	Native *field     `json:"native,omitempty"`
	Value  *field     `json:"value,omitempty"`
	Score  *string    `json:"score,omitempty"`
	ID     string     `json:"id,omitempty"`
	Entry  [][2]field `json:"entry,omitempty"`

	Group     *field `json:"group,omitempty"`
	Read      *int64 `json:"entries_read,omitempty"`
	Consumer  *field `json:"consumer,omitempty"`
	Seen      *int64 `json:"seen_at_ms,omitempty"`
	Active    *int64 `json:"active_at_ms,omitempty"`
	Pending   string `json:"pending,omitempty"`
	Delivered *int64 `json:"delivered_at_ms,omitempty"`
	Count     *int64 `json:"deliveries,omitempty"`
}

// text makes a field of bytes.
func text(b []byte) *field { return &field{Text: jsonl.Text(b)} }

// bytesOf returns the bytes of a field; those of a long one live until the next line.
func (l *line) bytesOf(f *field) []byte {
	switch {
	case f == nil:
		return nil
	case f.long > 0:
		return l.lines.at(f.long - 1)
	}
	return []byte(f.Text)
}

// Types are those that a file has records of.
const Types = record.AllTypes
