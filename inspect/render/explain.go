package render

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kvferry/format"
	"kvferry/inspect/explain"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/jsonl"
	"kvferry/internal/text/page"
	"kvferry/record"
	"kvferry/store"
)

// maxShown is the number of bytes of a field to show as text.
const maxShown = 64

// ExplainText prints the state of a key and then its rows, as text.
type ExplainText struct {
	out   *bufio.Writer
	key   []byte
	rows  bytes.Buffer // the text of rows, which is printed after the state
	limit int64
	where string
	n     int64
}

// NewExplainText returns a printer of a key and of at most limit rows, which it holds in memory.
func NewExplainText(w io.Writer, key []byte, limit int64) *ExplainText {
	return &ExplainText{out: bufio.NewWriter(page.Painted(w)), key: key, limit: limit}
}

// Row keeps the text of one row.
func (p *ExplainText) Row(r *explain.Row) error {
	if p.n++; p.n > p.limit {
		return nil
	}
	if where := r.DB + "/" + r.Keyspace; where != p.where || p.n == 1 {
		p.where = where
		fmt.Fprintf(&p.rows, "database %s, %s\n", escape.Text(r.DB), escape.Text(r.Keyspace))
	}
	state := "dead "
	if r.Alive {
		state = "alive"
	}
	kind := r.Row.Kind
	if kind == "" {
		kind = "row"
	}
	place := placeText(r.Place)
	if r.ValueAt.File != "" {
		place += ", value in " + placeText(r.ValueAt)
	}
	fmt.Fprintf(&p.rows, "  %s  %s, %s, seq %d, %s, %s\n", state, r.Kind, kind, r.Seq, place, record.Count(int64(r.Bytes), "byte"))
	fmt.Fprintf(&p.rows, "         %s\n", escape.Text(r.Why))
	if line := fieldsText(r.Row.Fields); line != "" {
		fmt.Fprintf(&p.rows, "         %s\n", line)
	}
	return nil
}

func placeText(p record.Place) string {
	if p.File == "" {
		return "no file"
	}
	text := p.File
	if p.HasOffset() {
		text += fmt.Sprintf(" at %d", p.Off)
	}
	if p.Level >= 0 {
		text += fmt.Sprintf(", level %d", p.Level)
	}
	return text
}

// fieldsText formats the fields that the row's kind and key do not show already.
func fieldsText(fields []format.Field) string {
	var parts []string
	for _, f := range fields {
		if f.Name == "key" || f.Name == "kind" || f.Name == "klen" || f.Name == "separator" {
			continue
		}
		parts = append(parts, f.Name+"="+valueOf(f.Value))
	}
	return strings.Join(parts, "  ")
}

// valueOf formats the value of a decoded field.
func valueOf(v any) string {
	switch v := v.(type) {
	case []byte:
		return quoted(string(v))
	case string:
		return quoted(v)
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.999Z07:00")
	case float64:
		return string(jsonl.AppendScore(nil, v))
	}
	return fmt.Sprint(v)
}

func quoted(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q… (%s bytes)", s[:maxShown], record.Number(int64(len(s))))
	}
	return fmt.Sprintf("%q", s)
}

// Finish prints the state of the key, its findings and its rows.
func (p *ExplainText) Finish(x *explain.Result) error {
	p.verdict(x)
	for i := range x.Findings {
		fmt.Fprintln(p.out, FindingLine(&x.Findings[i]))
	}
	if x.Omitted > 0 {
		fmt.Fprintf(p.out, "and %s of this key; kvferry verify counts them\n", record.Count(x.Omitted, "more finding"))
	}
	if x.Unlisted > 0 {
		fmt.Fprintf(p.out, "and %s of files that its rows may be in; kvferry verify lists them\n", record.Count(x.Unlisted, "more finding"))
	}
	if x.Rows > 0 {
		fmt.Fprintln(p.out)
	}
	_, _ = p.out.Write(p.rows.Bytes()) // Flush returns the error
	if p.n > p.limit {
		fmt.Fprintf(p.out, "and %s (--limit); --format json lists all\n", record.Count(p.n-p.limit, "more row"))
	}
	return p.out.Flush()
}

// verdict prints the state of the key.
func (p *ExplainText) verdict(x *explain.Result) {
	if x.Rows == 0 {
		where := ""
		if slices.ContainsFunc(x.Findings, func(f record.Finding) bool { return f.Skipped() }) {
			where = " in readable tables and blocks"
		}
		fmt.Fprintf(p.out, "%s: no rows%s\n", record.Quote(p.key), where)
		return
	}
	for _, s := range x.States {
		fmt.Fprintf(p.out, "%s in database %s: %s %s\n", record.Quote(p.key), escape.Text(s.DB), typeName(s.Type),
			escape.Text(stateText(&s)))
	}
	fmt.Fprintf(p.out, "%s, %s alive; %s, %s of them dead\n", record.Count(x.Rows, "row"), record.Number(x.Alive),
		record.Count(x.Bytes, "byte"), record.Number(x.Dead))
}

func typeName(t record.Type) string {
	if t == 0 {
		return "key"
	}
	return t.String()
}

func stateText(s *explain.State) string {
	parts := []string{s.State}
	if s.Detail != "" {
		parts = append(parts, s.Detail)
	}
	if s.State == "alive" || s.State == "expired" {
		parts = append(parts, record.Count(s.Elements, "element"))
	}
	if s.Version >= 0 {
		parts = append(parts, fmt.Sprintf("version %d", s.Version))
	}
	switch {
	case s.ExpireMS != 0 && s.State == "expired":
		parts = append(parts, "at "+jsonl.TimeText(s.ExpireMS))
	case s.ExpireMS != 0:
		parts = append(parts, "expires at "+jsonl.TimeText(s.ExpireMS))
	case s.State == "alive":
		parts = append(parts, "never expires")
	}
	return strings.Join(parts, ", ")
}

// ExplainJSON prints the rows of a key as one JSON document as they are found.
type ExplainJSON struct {
	out   *bufio.Writer
	key   []byte
	limit int64
	n     int64

	omitted int64 // rows beyond the limit
}

// NewExplainJSON returns a printer of at most limit rows of a key.
func NewExplainJSON(w io.Writer, key []byte, limit int64) *ExplainJSON {
	return &ExplainJSON{out: bufio.NewWriter(w), key: key, limit: limit}
}

// jsonField is a decoded field.
type jsonField struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	Where string `json:"in"`
	Off   int    `json:"offset"`
	Len   int    `json:"length"`
}

type jsonRow struct {
	DB       jsonl.Text    `json:"db"`
	Keyspace string        `json:"keyspace"`
	Type     string        `json:"type,omitempty"`
	Op       string        `json:"op,omitempty"`
	Kind     string        `json:"kind,omitempty"`
	Seq      *uint64       `json:"seq,omitempty"`
	Place    *record.Place `json:"place,omitempty"`
	ValueAt  *record.Place `json:"value_at,omitempty"`
	Alive    *bool         `json:"alive,omitempty"`
	Why      string        `json:"why,omitempty"`
	Version  *int64        `json:"version,omitempty"`
	Expires  string        `json:"expires_at,omitempty"`
	Bytes    int64         `json:"bytes"`
	Key      string        `json:"key_hex"`
	Value    string        `json:"value_hex"`
	Error    string        `json:"error,omitempty"`
	Fields   []jsonField   `json:"fields"`
}

// newJSONRow builds the form of a row shared by explain and dump --raw.
func newJSONRow(db, keyspace string, t record.Type, row *format.Row, key, value []byte) jsonRow {
	out := jsonRow{DB: jsonl.Text(db), Keyspace: keyspace, Kind: row.Kind, Key: hex.EncodeToString(key),
		Value: hex.EncodeToString(value), Bytes: int64(len(key) + len(value)), Fields: []jsonField{}}
	if t != 0 {
		out.Type = t.String()
	}
	if row.Version >= 0 {
		out.Version = &row.Version
	}
	if row.ExpireMS != 0 {
		out.Expires = jsonl.TimeText(row.ExpireMS)
	}
	if row.Err != nil {
		out.Error = row.Err.Error()
	}
	for _, f := range row.Fields {
		out.Fields = append(out.Fields, jsonField{f.Name, jsonValue(f.Value), f.Where, f.Off, f.Len})
	}
	return out
}

// jsonValue converts the value of a decoded field for JSON.
func jsonValue(v any) any {
	switch v := v.(type) {
	case []byte:
		return Text(v)
	case string:
		return Text(v)
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.999Z07:00")
	case float64:
		return string(jsonl.AppendScore(nil, v))
	}
	return v
}

// Row prints one row.
func (p *ExplainJSON) Row(r *explain.Row) error {
	if p.n == p.limit {
		p.omitted++
		return nil
	}
	out := newJSONRow(r.DB, r.Keyspace, r.Type, &r.Row, r.Key, r.Value)
	out.Op, out.Seq, out.Alive, out.Why = r.Kind.String(), &r.Seq, &r.Alive, r.Why
	if r.Kind == store.RangeDelete {
		out.Kind = "range tombstone"
	}
	if r.Place.File != "" {
		out.Place = &r.Place
	}
	if r.ValueAt.File != "" {
		out.ValueAt = &r.ValueAt
	}
	b, err := marshal(out)
	if err != nil {
		return err
	}
	sep := ",\n  "
	if p.n == 0 {
		key, err := marshal(Text(p.key))
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, `{"key":%s,"rows":[`, key)
		sep = "\n  "
	}
	p.n++
	p.out.WriteString(sep)
	_, err = p.out.Write(b)
	return err
}

type jsonState struct {
	DB       jsonl.Text `json:"db"`
	Type     string     `json:"type"`
	State    string     `json:"state"`
	Detail   string     `json:"detail,omitempty"`
	Elements int64      `json:"elements"`
	ExpireMS int64      `json:"expire_at_ms"`
	Version  *int64     `json:"version,omitempty"`
	Count    *int64     `json:"count,omitempty"`
}

// Finish prints the summary and ends the document.
func (p *ExplainJSON) Finish(x *explain.Result) error {
	if p.n == 0 {
		key, err := marshal(Text(p.key))
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, `{"key":%s,"rows":[`, key)
	}
	states, findings := []jsonState{}, []jsonFinding{}
	for i := range x.States {
		s := &x.States[i]
		out := jsonState{DB: jsonl.Text(s.DB), Type: typeName(s.Type), State: s.State, Detail: s.Detail, Elements: s.Elements,
			ExpireMS: s.ExpireMS}
		if s.Version >= 0 {
			out.Version = &s.Version
		}
		if s.Count >= 0 {
			out.Count = &s.Count
		}
		states = append(states, out)
	}
	for i := range x.Findings {
		findings = append(findings, newJSONFinding(&x.Findings[i], -1))
	}
	sum := map[string]any{"states": states, "findings": findings, "alive": x.Alive, "bytes": x.Bytes, "dead_bytes": x.Dead}
	if n := x.Omitted + x.Unlisted; n > 0 {
		sum["findings_omitted"] = n
	}
	if p.omitted > 0 {
		sum["rows_omitted"] = p.omitted
	}
	b, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\n],%s\n", escape.JSON(b[1:]))
	return p.out.Flush()
}
