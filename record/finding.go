package record

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Severity ranks findings.
type Severity uint8

// Severities, mildest first.
const (
	Note    Severity = iota // worth knowing
	Warning                 // garbage or doubt; the data is whole
	Error                   // data is damaged, missing or contradicts itself
)

var severityNames = [...]string{"note", "warning", "error"}

// String returns the name of the severity.
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// ParseSeverity reads the name of a severity.
func ParseSeverity(s string) (Severity, error) {
	for i, n := range severityNames {
		if n == s {
			return Severity(i), nil
		}
	}
	return 0, fmt.Errorf("unknown severity %q: want note, warning or error", s)
}

// Place says where a row or a damage is, as far as it is known.
type Place struct {
	File  string
	Off   int64  // of the block or log record in File, in bytes; NoOffset when it is about File as a whole
	Level int    // -1: a log (WAL) or unknown
	Seq   uint64 // sequence number
}

// placeJSON is a place with what is known of it.
type placeJSON struct {
	File  string `json:"file,omitempty"`
	Off   *int64 `json:"offset,omitempty"`
	Level int    `json:"level"`
	Seq   uint64 `json:"seq,omitempty"`
}

// HasOffset reports whether the place is one within a file.
func (p Place) HasOffset() bool { return p.File != "" && p.Off >= 0 }

// MarshalJSON writes what is known.
func (p Place) MarshalJSON() ([]byte, error) {
	out := placeJSON{File: p.File, Level: p.Level, Seq: p.Seq}
	if p.HasOffset() {
		out.Off = &p.Off
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Place) UnmarshalJSON(b []byte) error {
	var in placeJSON
	err := json.Unmarshal(b, &in)
	*p = Place{File: in.File, Off: NoOffset, Level: in.Level, Seq: in.Seq}
	switch {
	case in.Off != nil:
		p.Off = *in.Off
	case in.File == "":
		p.Off = 0
	}
	return err
}

// Finding is something wrong or notable about a source. Kind is a stable, documented slug.
type Finding struct {
	Kind     string
	Severity Severity
	DB       string
	Type     Type   // 0: not about one type
	Keyspace string // where the row stands
	Key      []byte // user key; nil when the finding is not about one
	Place    Place
	Detail   string // one sentence
}

// NoOffset is the offset of an error or a finding that is about no one place of a file or row: of a whole file, or of what
// was put together from several places.
const NoOffset = -1

// CorruptError tells where bytes are damaged. Codecs fill Off, Field and Err, readers add the rest.
type CorruptError struct {
	Format   string
	Keyspace string
	Key      []byte // raw row key
	File     string
	Off      int64 // in the value or row for codecs; in File when File is set; NoOffset
	Field    string
	Err      error
}

// Error prints what is known, leaving out what is not:
// blackwidow hashes/data_cf key "\x03\x00…": offset 7: version: need 4 bytes, have 2
func (e *CorruptError) Error() string {
	s := ""
	for _, part := range []string{e.Format, e.Keyspace} {
		if part != "" {
			s += part + " "
		}
	}
	if e.Key != nil {
		s += "key " + Quote(e.Key) + " "
	}
	if e.File != "" {
		s += e.File + " "
	}
	if s != "" {
		s = s[:len(s)-1] + ": "
	}
	if e.Off >= 0 {
		s += fmt.Sprintf("offset %d: ", e.Off)
	}
	if e.Field != "" {
		s += e.Field + ": "
	}
	return s + e.Err.Error()
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Shift moves the place by n bytes, as when a field is placed in its row or a page in its file.
func (e *CorruptError) Shift(n int64) {
	if e.Off >= 0 {
		e.Off += n
	}
}

// Reason says what is wrong, without the place: the field, when one is known, and the cause.
func (e *CorruptError) Reason() string {
	if e.Field == "" {
		return fmt.Sprint(e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Field, e.Err)
}

// Place returns where in a file the damage is; file is what the error's is to be called.
func (e *CorruptError) Place(file string) Place {
	return Place{File: file, Off: e.Off, Level: -1}
}

// Errors that several packages test for.
var (
	// ErrShort says that bytes end before a field does.
	ErrShort = errors.New("too short")
	// ErrTrailing says that bytes are left after the last field.
	ErrTrailing = errors.New("bytes left over")
)

// Short makes the CorruptError of a field that needs more bytes than there are.
func Short(off int, field string, need, have int) *CorruptError {
	return &CorruptError{Off: int64(off), Field: field,
		Err: fmt.Errorf("need %d bytes, have %d: %w", need, have, ErrShort)}
}

// maxQuoted is how many bytes of a key an error or a finding shows.
const maxQuoted = 64

// Plural writes a number of things for people: 1 record, 2 records.
func Plural(n int64, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", n, name)
}

// Quote quotes a key for people, cut at 64 bytes.
func Quote(key []byte) string {
	if len(key) > maxQuoted {
		return fmt.Sprintf("%q…", key[:maxQuoted])
	}
	return fmt.Sprintf("%q", key)
}

// Loss is something about a record that a target cannot hold. Kind is a stable, documented slug
// that --allow-loss takes.
type Loss struct {
	Kind   string
	Detail string
	// Drops says that the record, or the part of it that Detail names, is left out; otherwise it
	// is written changed.
	Drops bool
	// Note says that it is told but needs no permission.
	Note bool
}
