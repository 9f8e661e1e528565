package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"kvferry/inspect/verify"
	"kvferry/internal/text/escape"
	"kvferry/record"
)

// The elements of a JUnit report, following the schema of Apache Ant's JUnit tasks.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Package    string          `xml:"package,attr"`
		ID         int             `xml:"id,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Hostname   string          `xml:"hostname,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Time       string          `xml:"time,attr"`
		Properties junitProperties `xml:"properties"`
		Cases      []junitCase     `xml:"testcase"`
		Out        string          `xml:"system-out"`
		Err        string          `xml:"system-err"`
	}
	junitProperties struct {
		Properties []junitProperty `xml:"property"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a verification as a JUnit report: one test case per kind of finding, which fails if
// findings of the kind fail the command.
func JUnit(w io.Writer, r *Result) error {
	host, err := os.Hostname()
	if err != nil || strings.TrimSpace(host) == "" {
		host = "localhost"
	}
	s := junitSuite{Name: r.Source, Package: "kvferry.verify", Hostname: host, Errors: 0,
		Timestamp: time.UnixMilli(r.NowMS).UTC().Format("2006-01-02T15:04:05"), Time: fmt.Sprintf("%.3f", r.Seconds),
		Properties: junitProperties{[]junitProperty{
			{"tool", "kvferry " + r.Tool}, {"source", r.Source}, {"format", r.Format}, {"filters", escape.Shell(r.Selected.Filters.All())},
			{"as_of", timeText(r.NowMS)},
			{"records", fmt.Sprint(r.Records)}, {"elements", fmt.Sprint(r.Elements)},
			{"files", fmt.Sprint(r.Files)}, {"bytes", fmt.Sprint(r.Bytes)}}},
		Out: Summary(r.Outcome)}
	if v := r.Verdict(); v != nil {
		s.Out += "\n" + strings.Join(v.lines(), "\n")
		s.Properties.Properties = append(s.Properties.Properties, junitProperty{"cause", v.Cause}, junitProperty{"lost", v.Lost},
			junitProperty{"how_sure", v.Sure}, junitProperty{"next", v.Next})
	}
	counts := make(map[string][]verify.KindCount)
	for _, c := range r.Counts {
		counts[c.Kind] = append(counts[c.Kind], c)
	}
	for _, k := range kinds(r) {
		c := junitCase{Name: k.Kind, Class: "kvferry.verify." + k.Group, Time: "0"}
		if c.Failure = r.failure(k.Kind, counts[k.Kind]); c.Failure != nil {
			s.Failures++
		}
		s.Cases = append(s.Cases, c)
	}
	s.Tests = len(s.Cases)
	w = escape.Writer(w)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{s}}); err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n")
	return err
}

// kinds lists all known kinds, then unknown kinds among the findings.
func kinds(r *Result) []record.FindingKind {
	out := record.FindingKinds()
	for _, c := range r.Counts {
		if _, ok := record.FindingKindOf(c.Kind); !ok {
			out = append(out, record.FindingKind{Kind: c.Kind, Severity: c.Severity, Group: "other", Text: c.Kind})
		}
	}
	return out
}

// failure sums up the findings of a kind, or returns nil if they do not fail the command.
func (r *Result) failure(kind string, counts []verify.KindCount) *junitFailure {
	var n int64
	severity := record.Note
	for _, c := range counts {
		if c.Severity >= r.FailOn {
			n += c.Count
			severity = max(severity, c.Severity)
		}
	}
	if n == 0 {
		return nil
	}
	var lines []string
	causes := r.Causes()
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Kind == kind && f.Severity >= r.FailOn {
			line := FindingLine(f)
			if causes[i] >= 0 {
				line += "; follows from " + escape.Text(Where(&r.Findings[causes[i]]))
			}
			lines = append(lines, line)
		}
	}
	if more := n - int64(len(lines)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", record.Number(more)))
	}
	return &junitFailure{Message: fmt.Sprintf("%s × %s", record.Number(n), kind), Type: severity.String(),
		Text: strings.Join(lines, "\n")}
}
