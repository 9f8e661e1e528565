// Package patch reads and writes patches, which bring a server up to date. A patch is a file of JSON lines. The first
// line is a header, the last a trailer, and each line between them is an operation on a whole key, or an element of
// one.
//
//	{"kvferry_patch":1,"from":"/data/dump","to":"redis://db1:6379","now_ms":…}
//	{"op":"put","db":"0","type":"hash","key":"h","expire_at_ms":0,"len":1}
//	{"op":"set","field":"f","value":"v"}                 an element of the key that was put last
//	{"op":"expire","db":"0","type":"string","key":"s","expire_at_ms":4102444800000}
//	{"op":"delete","db":"0","type":"list","key":"gone"}
//	{"op":"delete","db":"0","type":"other","key":"FUNCTION lib1","keyless":"function"}
//	{"op":"end","puts":1,"expires":1,"deletes":1,"sha256":"…"}
//
// sha256 covers all bytes before the last line. Text is a JSON string, or {"base64":"…"} for bytes that are not
// UTF-8. Applying a patch twice has the same effect as applying it once. docs/diff.md lists the fields of each type.
package patch

import (
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Version is the version of the files that this package reads and writes.
const Version = 1

// Head is the first line of a patch.
type Head struct {
	Version int    `json:"kvferry_patch"`
	From    string `json:"from"` // source of the data
	To      string `json:"to"`   // the server to change
	NowMS   int64  `json:"now_ms"`
}

// Counts are the operations of a patch by kind.
type Counts struct {
	Puts    int64 `json:"puts"`
	Expires int64 `json:"expires"`
	Deletes int64 `json:"deletes"`
}

// Op is the operation of a line.
type Op string

// Operations.
const (
	Put    Op = "put"    // replace the key with the elements that follow
	Expire Op = "expire" // change only the expiry of the key
	Delete Op = "delete" // delete the key
	set    Op = "set"
	end    Op = "end"
)

// line is any line after the first.
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

	lines *lines // holds long fields
}

// stream holds the attributes of a stream besides its elements.
type stream struct {
	Last       string `json:"last_id,omitempty"` // of the stream, or of a group
	MaxDeleted string `json:"max_deleted_id,omitempty"`
	Added      uint64 `json:"entries_added,omitempty"`
}

// element holds the fields of an element. Those of other types are nil.
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

// text returns a field with a copy of b.
func text(b []byte) *field { return &field{Text: jsonl.Text(b)} }

// bytesOf returns the bytes of a field. Those of a long field are valid until the next line.
func (l *line) bytesOf(f *field) []byte {
	switch {
	case f == nil:
		return nil
	case f.long > 0:
		return l.lines.at(f.long - 1)
	}
	return []byte(f.Text)
}

// Types are the types of records that a patch can hold.
const Types = record.AllTypes
