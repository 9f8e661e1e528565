package blackwidow_test

import (
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

var goldens = []string{"bw-basic", "bw-edge"}

// TestGoldens reads the original engine's databases without findings.
func TestGoldens(t *testing.T) {
	for _, name := range goldens {
		t.Run(name, func(t *testing.T) {
			var l record.Ledger
			var f formattest.Findings
			src := formattest.OpenGolden(t, blackwidow.New(), name)
			got := formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Ledger: &l, Report: f.Report, Deep: true}))
			formattest.CompareLines(t, got, fixtures.Truth(t, name))
			formattest.CheckLedger(t, &l)
			f.CheckNone(t, record.Warning)
			for _, k := range src.Keyspaces() {
				t.Logf("%s: %s", k.Name, formattest.Classes(&l, k.Name))
			}
		})
	}
}
