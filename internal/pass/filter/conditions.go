package filter

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// KeyFile is the name of the condition that is stored as a digest, because a list of keys may be long.
const KeyFile = "key-file"

// NoExpiry is the name of the condition whose flag has no value.
const NoExpiry = "no-expiry"

// Names lists the conditions of a selection by their flags. The handling of expired records is not a condition.
func Names() []string {
	return []string{"type", "db", "match", "exclude", "regex", KeyFile, "range", "sample", NoExpiry, "ttl-from", "ttl-to",
		"min-bytes", "max-bytes", "min-elements"}
}

// Where is the name of a condition that is a function. No flag repeats it.
const Where = "where"

// ErrFunction means that a selection cannot be repeated.
var ErrFunction = errors.New("a Go program selected the records by a function (Filter.Func), which no command can repeat")

// Conditions holds the conditions of a selection by name, each with the values of its flag. Times are absolute. A
// list of keys is represented by its length and digest.
type Conditions map[string][]string

// Conditions returns the conditions that s sets. Relative times are resolved as of now.
func (s *Selection) Conditions(now time.Time) Conditions {
	c := Conditions{}
	for _, t := range s.Types.Types() {
		c["type"] = append(c["type"], t.String())
	}
	if len(s.DBs) > 0 {
		c["db"] = slices.Clone(s.DBs)
	}
	if len(s.Match) > 0 {
		c["match"] = slices.Clone(s.Match)
	}
	if len(s.Exclude) > 0 {
		c["exclude"] = slices.Clone(s.Exclude)
	}
	if s.Regex != nil {
		c["regex"] = []string{s.Regex.String()}
	}
	if s.Keys != nil {
		sum := record.HashBytes(fmt.Appendf(nil, "%q", slices.Sorted(maps.Keys(s.Keys))))
		c[KeyFile] = []string{fmt.Sprintf("%d keys, digest %s", len(s.Keys), sum)}
	}
	if s.Range != nil {
		c["range"] = []string{RangeText(s.Range)}
	}
	if s.Sample > 1 {
		c["sample"] = []string{strconv.FormatUint(s.Sample, 10)}
	}
	if s.Where != nil {
		c[Where] = []string{"a function"}
	}
	if s.NoExpiry {
		c[NoExpiry] = []string{"true"}
	}
	for name, bound := range map[string]*Moment{"ttl-from": s.ExpireFrom, "ttl-to": s.ExpireTo} {
		if bound != nil {
			c[name] = []string{MomentText(time.UnixMilli(bound.unixMS(now)))}
		}
	}
	for name, size := range map[string]int64{"min-bytes": s.MinBytes, "max-bytes": s.MaxBytes, "min-elements": s.MinElements} {
		if size > 0 {
			c[name] = []string{strconv.FormatInt(size, 10)}
		}
	}
	return c
}

// MomentText formats a time for flags: RFC 3339, or Unix seconds for years outside its range.
func MomentText(t time.Time) string {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', -1, 64)
	}
	return t.Format(time.RFC3339Nano)
}

// Same reports whether c and d have the same values of a condition, in any order.
func (c Conditions) Same(d Conditions, name string) bool {
	return slices.Equal(set(c[name]), set(d[name]))
}

func set(values []string) []string { return slices.Compact(slices.Sorted(slices.Values(values))) }

// Values returns the arguments that recreate a condition, one per use of its flag.
func (c Conditions) Values(name string) []string {
	values := c[name]
	switch {
	case len(values) == 0:
		return nil
	case name == "type":
		return []string{strings.Join(values, ",")}
	case name != "db":
		return values
	}
	var out []string
	for _, db := range values {
		out = append(out, csvField(db))
	}
	return out
}

// Words returns the words of a command line that recreate a condition.
func (c Conditions) Words(name string) (words []string) {
	for _, v := range c.Values(name) {
		words = append(words, "--"+name)
		if name != NoExpiry {
			words = append(words, v)
		}
	}
	return words
}

// All returns the words of a command line that recreate all conditions.
func (c Conditions) All() (words []string) {
	for _, name := range Names() {
		words = append(words, c.Words(name)...)
	}
	return words
}

// csvField quotes a value of a flag that takes a CSV list.
func csvField(s string) string {
	if s == "" {
		return `""`
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	w.Write([]string{s}) // a Builder takes everything
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n")
}

// Texts formats each condition as a single text. Selections with equal texts select the same records as of the same
// time.
func (c Conditions) Texts() map[string]string {
	m := map[string]string{}
	for name, values := range c {
		m[name] = strings.Join(values, ",")
		if name == "db" || name == "match" || name == "exclude" {
			m[name] = fmt.Sprintf("%q", values)
		}
	}
	return m
}

// MarshalJSON writes an object of arrays.
func (c Conditions) MarshalJSON() ([]byte, error) {
	m := make(map[string][]jsonl.Text)
	for name, values := range c {
		for _, v := range values {
			m[name] = append(m[name], jsonl.Text(v))
		}
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what MarshalJSON writes. It rejects unknown conditions, because it cannot apply them.
func (c *Conditions) UnmarshalJSON(data []byte) error {
	var m map[string][]jsonl.Text
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	*c = Conditions{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if name == Where {
			return ErrFunction
		}
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("filter %q is not known to this program", name)
		}
		for _, v := range m[name] {
			(*c)[name] = append((*c)[name], string(v))
		}
	}
	return nil
}
