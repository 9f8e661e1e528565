// Package render prints the results of package inspect as text, JSON, JUnit, SARIF or an HTML page, and has the forms
// of dumps.
package render

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"kvferry/inspect"
	"kvferry/inspect/verify"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Text encodes bytes in JSON: as a string if they are UTF-8, else as {"base64":"…"}.
type Text []byte

// MarshalJSON encodes the bytes.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return marshal(string(t))
	}
	return marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(t)})
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*t = Text(s)
		return nil
	}
	var other struct {
		Base64 []byte `json:"base64"`
	}
	if err := json.Unmarshal(b, &other); err != nil {
		return err
	}
	*t = other.Base64
	return nil
}

// marshal is json.Marshal with the escapes of escape.JSON instead of those for HTML.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return escape.JSON([]byte(strings.TrimSuffix(b.String(), "\n"))), nil
}

// indented writes a value as indented JSON.
func indented(w io.Writer, v any) error {
	e := json.NewEncoder(escape.JSONWriter(w))
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Result is a verification, with the details that the command adds.
type Result struct {
	*verify.Outcome
	Tool   string // version of the program
	Source string // as given on the command line
	NowMS  int64
	// Selected are the records that were checked.
	Selected inspect.Selected
	Seconds  float64         // duration
	Rest     string          // command line that saves the readable part
	FailOn   record.Severity // findings of this severity or higher fail the command
}

// Failed reports whether the command fails.
func (r *Result) Failed() bool { return r.Total(r.FailOn) > 0 }

type jsonFinding struct {
	Kind     string        `json:"kind"`
	Severity string        `json:"severity"`
	DB       jsonl.Text    `json:"db,omitempty"`
	Type     string        `json:"type,omitempty"`
	Keyspace string        `json:"keyspace,omitempty"`
	Key      *Text         `json:"key,omitempty"`
	Place    *record.Place `json:"place,omitempty"`
	Detail   string        `json:"detail"`
	Missing  int64         `json:"missing_elements,omitempty"`
	Unread   int64         `json:"unread_bytes,omitempty"`
	// FollowsFrom is the index of a finding that explains this one.
	FollowsFrom *int `json:"follows_from,omitempty"`
}

// newJSONFinding encodes a finding. cause is the index of the finding that it may follow from, or -1.
func newJSONFinding(f *record.Finding, cause int) jsonFinding {
	out := jsonFinding{Kind: f.Kind, Severity: f.Severity.String(), DB: jsonl.Text(f.DB), Keyspace: f.Keyspace, Detail: f.Detail,
		Missing: f.Missing, Unread: f.Unread}
	if cause >= 0 {
		out.FollowsFrom = &cause
	}
	if f.Type != 0 {
		out.Type = f.Type.String()
	}
	if f.Key != nil {
		key := Text(f.Key)
		out.Key = &key
	}
	if f.Place.File != "" {
		out.Place = &f.Place
	}
	return out
}

type jsonCount struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Count    int64  `json:"count"`
	Unread   int64  `json:"unread_bytes,omitempty"`
}

type jsonResult struct {
	Tool   string `json:"tool"`
	Source string `json:"source"`
	Format string `json:"format"`
	NowMS  int64  `json:"now_ms"`
	inspect.Selected
	Seconds   float64       `json:"seconds"`
	Passed    bool          `json:"passed"`
	Databases []string      `json:"databases"`
	Records   int64         `json:"records"`
	Expired   int64         `json:"expired,omitempty"`
	Elements  int64         `json:"elements"`
	Rows      int64         `json:"rows"`
	Entries   int64         `json:"entries"`
	Files     int           `json:"files"`
	Bytes     int64         `json:"bytes"`
	Skipped   int64         `json:"skipped,omitempty"`
	Unread    []string      `json:"unread,omitempty"`
	Verdict   *Verdict      `json:"verdict"` // null: sound
	Counts    []jsonCount   `json:"counts"`
	Findings  []jsonFinding `json:"findings"`
}

// JSON writes a verification as one JSON document.
func JSON(w io.Writer, r *Result) error {
	out := jsonResult{Tool: "kvferry " + r.Tool, Source: r.Source, Format: r.Format, NowMS: r.NowMS, Selected: r.Selected,
		Seconds: r.Seconds, Verdict: r.Verdict(),
		Passed: !r.Failed(), Databases: r.Databases, Records: r.Records, Expired: r.Expired, Elements: r.Elements, Rows: r.Rows,
		Entries: r.Entries, Files: r.Files, Bytes: r.Bytes, Skipped: r.Skipped, Unread: r.Unread,
		Counts: []jsonCount{}, Findings: []jsonFinding{}}
	for _, c := range r.Counts {
		out.Counts = append(out.Counts, jsonCount{c.Kind, c.Severity.String(), c.Count, c.Unread})
	}
	causes := r.Causes()
	for i := range r.Findings {
		out.Findings = append(out.Findings, newJSONFinding(&r.Findings[i], causes[i]))
	}
	return indented(w, out)
}

// FindingLine formats a finding in one line. Names in it are escaped.
func FindingLine(f *record.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.Severity, f.Kind)
	if f.DB != "" {
		b.WriteString(" db " + f.DB)
	}
	if f.Type != 0 {
		b.WriteString(" " + f.Type.String())
	}
	if f.Key != nil {
		b.WriteString(" " + record.Quote(f.Key))
	}
	b.WriteString(": " + f.Detail)
	if at := Where(f); at != "" {
		b.WriteString(" [" + at + "]")
	}
	return escape.Text(b.String())
}

// Where formats the place of a finding.
func Where(f *record.Finding) string {
	var parts []string
	if f.Keyspace != "" {
		parts = append(parts, f.Keyspace)
	}
	if p := f.Place; p.File != "" {
		parts = append(parts, p.File)
		if p.HasOffset() {
			parts = append(parts, fmt.Sprintf("offset %d", p.Off))
		}
		if p.Level >= 0 {
			parts = append(parts, fmt.Sprintf("level %d", p.Level))
		}
		if p.Seq > 0 {
			parts = append(parts, fmt.Sprintf("seq %d", p.Seq))
		}
	}
	return strings.Join(parts, ", ")
}
