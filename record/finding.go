package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Severity ranks findings.
type Severity uint8

// The severities, lowest first.
const (
	Note    Severity = iota // worth knowing
	Warning                 // garbage or doubt; the data is complete
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

// Place locates a row or damage, as far as it is known.
type Place struct {
	File  string
	Off   int64  // of the block or log record in File, in bytes; NoOffset: the whole file
	Level int    // -1: a log (WAL) or unknown
	Seq   uint64 // sequence number
}

// InFile returns the place of a whole file.
func InFile(name string) Place { return Place{File: name, Off: NoOffset, Level: -1} }

// placeJSON is the known part of a place.
type placeJSON struct {
	File  string `json:"file,omitempty"`
	Off   *int64 `json:"offset,omitempty"`
	Level int    `json:"level"`
	Seq   uint64 `json:"seq,omitempty"`
}

// HasOffset reports whether the place is a position in a file.
func (p Place) HasOffset() bool { return p.File != "" && p.Off >= 0 }

// MarshalJSON writes the known fields.
func (p Place) MarshalJSON() ([]byte, error) {
	out := placeJSON{File: p.File, Level: p.Level, Seq: p.Seq}
	if p.HasOffset() {
		out.Off = &p.Off
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the output of MarshalJSON.
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

// Finding is a problem of a source, or a notable fact about it. Kind is stable and documented.
type Finding struct {
	Kind     string
	Severity Severity
	DB       string
	Type     Type   // 0: no single type
	Keyspace string // of the row
	Key      []byte // user key; nil if the finding concerns no single key
	Place    Place
	Detail   string // one sentence
	// Missing is the number of elements that the record should have and does not; None is true if it has none at all.
	Missing int64
	None    bool
	// Unread is the number of bytes that were not read, as far as it is known.
	Unread int64
	// Read is true if the rows that the finding is about were read nevertheless.
	Read bool `json:",omitempty"`
	// Lost says what a damaged file lacks and Sure how sure that is, for a verdict; "": the counts tell.
	Lost, Sure string
	// Times is the number of faults that the finding sums up; 0: one.
	Times int64 `json:",omitempty"`
}

// Faults returns the number of faults that the finding stands for.
func (f *Finding) Faults() int64 { return max(f.Times, 1) }

// NoOffset is the offset of an error or finding that concerns a whole file, or data assembled from several places.
const NoOffset = -1

// CorruptError locates damaged bytes. Codecs set Off, Field and Err; readers add the rest.
type CorruptError struct {
	Format   string
	Keyspace string
	Key      []byte // raw row key
	File     string
	Off      int64 // offset in the value or row for codecs, in File if File is set; or NoOffset
	Field    string
	Err      error
}

// defaultFamily is the keyspace that each store of RocksDB has: beside the name of a file it tells nothing.
const defaultFamily = "default"

// Error prints the known fields: blackwidow hashes/data_cf key "\x03\x00…": offset 7: version: need
// 4 bytes, have 2
func (e *CorruptError) Error() string {
	s := ""
	for _, part := range []string{e.Format, e.Keyspace} {
		if part != "" && (part != defaultFamily || e.File == "") {
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

// Shift adds n bytes to the offset, to turn one within a field into one within its row, or one
// within a page into one within its file.
func (e *CorruptError) Shift(n int64) {
	if e.Off >= 0 {
		e.Off += n
	}
}

// Reason describes the problem without its place: the field, if known, and the cause.
func (e *CorruptError) Reason() string {
	if e.Field == "" {
		return fmt.Sprint(e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Field, e.Err)
}

// Place returns the place of the damage; file is the name to give its file.
func (e *CorruptError) Place(file string) Place {
	return Place{File: file, Off: e.Off, Level: -1}
}

// Errors that several packages test for.
var (
	// ErrShort means that the data ends within a field.
	ErrShort = errors.New("too short")
	// ErrTrailing means that bytes follow the last field.
	ErrTrailing = errors.New("bytes left over")
	// ErrUnknown means that a type, flag or reserved byte has a value that no known server writes.
	ErrUnknown = errors.New("written by no known server")
)

// IsNewer reports whether an error means data in an unknown form, longer than known or with an unknown value:
// FindNewer.
func IsNewer(err error) bool { return errors.Is(err, ErrTrailing) || errors.Is(err, ErrUnknown) }

// Unknown returns the CorruptError for a type, flag or reserved byte of an unknown value.
func Unknown(off int, field, have string) *CorruptError {
	return &CorruptError{Off: int64(off), Field: field, Err: fmt.Errorf("%s: %w", have, ErrUnknown)}
}

// Short returns the CorruptError for a field that needs more bytes than are left.
func Short(off int, field string, need, have int) *CorruptError {
	return &CorruptError{Off: int64(off), Field: field,
		Err: fmt.Errorf("need %s bytes, have %s: %w", Number(need), Number(have), ErrShort)}
}

// Exact returns an error unless b, found at off, has n bytes.
func Exact(b []byte, off int, field string, n int) error {
	switch {
	case len(b) < n:
		return Short(off, field, n, len(b))
	case len(b) > n:
		return &CorruptError{Off: int64(off + n), Field: field,
			Err: fmt.Errorf("%s bytes beyond the %s: %w", Number(len(b)-n), Number(n), ErrTrailing)}
	}
	return nil
}

// maxQuoted is the number of bytes of a key that errors and findings show.
const maxQuoted = 64

// Count formats a count with its noun: 1 record, 2,000 records, 2 entries.
func Count(n int64, name string) string {
	if n == 1 {
		return "1 " + name
	}
	if stem, ok := strings.CutSuffix(name, "ry"); ok {
		name = stem + "rie"
	}
	return Number(n) + " " + name + "s"
}

// Number formats a number with its thousands separated: 1,234.
func Number[N ~int | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](n N) string {
	text := fmt.Sprintf("%d", n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Percent formats a share of a whole: 12 %, 99.7 %. It is 100 % only of all, and 0 % only of nothing.
func Percent(part, whole int64) string {
	p := 100 * float64(part) / float64(max(whole, 1))
	switch {
	case part > 0 && p < 0.05:
		return "< 0.1 %"
	case part < whole && p >= 99.95:
		return "> 99.9 %"
	case p > 0 && p < 10 || part < whole && p >= 99.5:
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

// Bytes formats a number of bytes: 1.5 MiB.
func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

// KeepKey copies a key into the memory of dst. The result is never nil: an empty key is a key, nil is none.
func KeepKey(dst, key []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(key))
	}
	return append(dst[:0], key...)
}

// Quote quotes a key for messages, cut at 64 bytes.
func Quote(key []byte) string {
	if len(key) > maxQuoted {
		return fmt.Sprintf("%q…", key[:maxQuoted])
	}
	return fmt.Sprintf("%q", key)
}

// Loss is a property of a record that a target cannot hold. Kind is stable and documented; --allow-loss accepts it.
type Loss struct {
	Kind   string
	Detail string
	// Drops is true if the record, or the part that Detail names, is left out; otherwise it is
	// written changed.
	Drops bool
	// Note is true if the loss is only reported and needs no permission.
	Note bool
	// Avoid names an option or a target that avoids the loss; "" if no such choice exists.
	Avoid string
}
