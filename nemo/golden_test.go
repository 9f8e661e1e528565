package nemo_test

import (
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

var goldens = []string{"nemo-basic", "nemo-basic-zlib"}

// TestGoldens reads the original engine's databases without findings.
func TestGoldens(t *testing.T) {
	for _, name := range goldens {
		t.Run(name, func(t *testing.T) {
			var l record.Ledger
			var f formattest.Findings
			src := formattest.OpenGolden(t, nemo.New(), name)
			got := formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Ledger: &l, Report: f.Report}))
			formattest.CompareLines(t, got, fixtures.Truth(t, name))
			formattest.CheckLedger(t, &l)
			f.CheckNone(t, record.Note)
			for _, k := range []string{"kv", "hash", "list", "set", "zset"} {
				t.Logf("%s: %s", k, formattest.Classes(&l, k))
			}
		})
	}
}
