package render

import (
	"strings"
	"testing"

	"kvferry/inspect/explain"
	"kvferry/record"
)

// TestExplainOmitted checks that findings not listed are counted.
func TestExplainOmitted(t *testing.T) {
	x := &explain.Result{Rows: 1, Findings: []record.Finding{{Kind: "count-mismatch", Severity: record.Error}}}
	for _, c := range []struct {
		omitted    int64
		text, json string
	}{{0, "", ""}, {1, "and 1 more finding of this key;", `"findings_omitted":1`}, {7, "and 7 more findings of this key;", `"findings_omitted":7`}} {
		x.Omitted = c.omitted
		var text, json strings.Builder
		if err := NewExplainText(&text, []byte("k")).Finish(x); err != nil {
			t.Fatal(err)
		}
		if err := NewExplainJSON(&json, []byte("k")).Finish(x); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), c.text) || strings.Contains(text.String(), "more finding") != (c.omitted > 0) {
			t.Errorf("%d: %s", c.omitted, &text)
		}
		if !strings.Contains(json.String(), c.json) || strings.Contains(json.String(), "omitted") != (c.omitted > 0) {
			t.Errorf("%d: %s", c.omitted, &json)
		}
	}
}
