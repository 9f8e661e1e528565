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
		if err := NewExplainText(&text, []byte("k"), 1).Finish(x); err != nil {
			t.Fatal(err)
		}
		if err := NewExplainJSON(&json, []byte("k"), 1).Finish(x); err != nil {
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

// TestExplainVerdictFirst checks that the state of a key precedes its rows, of which at most the limit are printed.
func TestExplainVerdictFirst(t *testing.T) {
	x := &explain.Result{States: []explain.State{{DB: "0", Type: record.Set, State: "alive", Elements: 3, Version: -1}}, Rows: 3,
		Alive: 3}
	for _, limit := range []int64{2, 3} {
		var text, json strings.Builder
		for _, p := range []interface {
			Row(*explain.Row) error
			Finish(*explain.Result) error
		}{NewExplainText(&text, []byte("k"), limit), NewExplainJSON(&json, []byte("k"), limit)} {
			for range x.Rows {
				if err := p.Row(&explain.Row{DB: "0", Keyspace: "ks", Alive: true, Why: "a row"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Finish(x); err != nil {
				t.Fatal(err)
			}
		}
		const verdict = "\"k\" in database 0: set alive, 3 elements, never expires\n3 rows, 3 alive; 0 bytes, 0 of them dead\n\ndatabase 0, ks\n"
		if out := text.String(); !strings.HasPrefix(out, verdict) || int64(strings.Count(out, "a row")) != limit ||
			strings.HasSuffix(out, "and 1 more row (--limit); --format json lists all\n") != (limit == 2) {
			t.Errorf("%d: %s", limit, out)
		}
		if out := json.String(); int64(strings.Count(out, "a row")) != limit ||
			strings.Contains(out, `"rows_omitted":1`) != (limit == 2) {
			t.Errorf("%d: %s", limit, out)
		}
	}
}
