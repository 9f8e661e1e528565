package render

import (
	"io"
	"net/url"
	"path"
	"strings"

	"kvferry/inspect"
	"kvferry/record"
)

const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

// The parts of a SARIF log that kvferry writes.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool                `json:"tool"`
		Invocations []sarifInvocation        `json:"invocations"`
		BaseIDs     map[string]sarifArtifact `json:"originalUriBaseIds,omitempty"`
		Results     []sarifResult            `json:"results"`
		Properties  sarifProperties          `json:"properties"`
	}
	sarifProperties struct {
		Source  string  `json:"source"`
		Format  string  `json:"format"`
		NowMS   int64   `json:"now_ms"`
		Seconds float64 `json:"seconds"`
		inspect.Selected
		Verdict *Verdict `json:"verdict"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Short   sarifMessage `json:"shortDescription"`
		Default sarifConfig  `json:"defaultConfiguration"`
	}
	sarifConfig struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		OK   bool `json:"executionSuccessful"`
		Code int  `json:"exitCode"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifMessage      `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   jsonFinding       `json:"properties"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifRegion struct {
		ByteOffset int64 `json:"byteOffset"`
		ByteLength int64 `json:"byteLength"`
	}
	sarifLogical struct {
		Name      string `json:"name"`
		Qualified string `json:"fullyQualifiedName"`
		Kind      string `json:"kind"`
	}
)

// SARIF writes a verification as a SARIF log. File names are relative to the dataset's location, as given on the
// command line.
func SARIF(w io.Writer, r *Result) error {
	rules, index := sarifRules(r)
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "kvferry", Version: r.Tool, Rules: rules}},
		Invocations: []sarifInvocation{{OK: true, Code: exitCode(r)}},
		Results:     []sarifResult{},
		Properties:  sarifProperties{r.Source, r.Format, r.NowMS, r.Seconds, r.Selected, r.Verdict()},
	}
	causes := r.Causes()
	for i := range r.Findings {
		f := &r.Findings[i]
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Kind, RuleIndex: index[f.Kind], Level: f.Severity.String(),
			Message:      sarifMessage{messageOf(f)},
			Locations:    []sarifLocation{{Physical: r.physical(f), Logical: logical(f)}},
			Fingerprints: map[string]string{"kvferry/v1": identity(f)},
			Properties:   newJSONFinding(f, causes[i]),
		})
	}
	return indented(w, sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{run}})
}

func exitCode(r *Result) int {
	if r.Failed() {
		return 3
	}
	return 0
}

func sarifRules(r *Result) ([]sarifRule, map[string]int) {
	index := make(map[string]int)
	var rules []sarifRule
	for i, k := range kinds(r) {
		index[k.Kind] = i
		rules = append(rules, sarifRule{ID: k.Kind, Short: sarifMessage{k.Text}, Default: sarifConfig{k.Severity.String()}})
	}
	return rules, index
}

func messageOf(f *record.Finding) string {
	text := f.Detail
	if f.Key != nil {
		text = f.Type.String() + " " + record.Quote(f.Key) + ": " + text
	}
	return text
}

// physical returns the file of a finding, or the dataset if it has no file: SARIF consumers expect a location.
func (r *Result) physical(f *record.Finding) *sarifPhysical {
	name := path.Join(strings.TrimSuffix(r.Source, "/"), f.Place.File)
	if path.IsAbs(f.Place.File) {
		name = f.Place.File
	}
	p := &sarifPhysical{Artifact: sarifArtifact{fileURI(name)}}
	if f.Place.HasOffset() {
		p.Region = &sarifRegion{ByteOffset: f.Place.Off}
	}
	return p
}

func fileURI(name string) string {
	u := url.URL{Path: name}
	if path.IsAbs(name) {
		u.Scheme = "file"
	}
	return u.String()
}

func logical(f *record.Finding) []sarifLogical {
	if f.Key == nil {
		return nil
	}
	name := record.Quote(f.Key)
	return []sarifLogical{{Name: name, Qualified: strings.Join([]string{f.DB, f.Type.String(), name}, "/"), Kind: "member"}}
}

// identity returns a fingerprint that is the same for the same finding in another run.
func identity(f *record.Finding) string {
	b := []byte(f.Kind + "\x00" + f.DB + "\x00" + f.Type.String() + "\x00")
	b = append(b, f.Key...)
	b = append(b, "\x00"+f.Keyspace+"\x00"+f.Detail...)
	return record.HashBytes(b).String()
}
