package versioned_test

import (
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

// TestMembersOfTheirOwn: types whose elements are not single rows, like nemo's linked lists, are read and written.
func TestMembersOfTheirOwn(t *testing.T) {
	o := fixtures.Options{DB: "0", Limits: nemo.New().Limits(), Short: true}
	formattest.RoundTrips(t, nemo.New(), o, record.Copied, record.Index, record.Housekeeping)
}

// TestWrittenByNemo reads a database of the engine: stale versions, deleted and expired keys, relinked lists.
func TestWrittenByNemo(t *testing.T) {
	var l record.Ledger
	var f formattest.Findings
	src := formattest.OpenGolden(t, nemo.New(), "nemo-basic")
	got := formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Ledger: &l, Report: f.Report}))
	formattest.CompareLines(t, got, fixtures.Truth(t, "nemo-basic"))
	formattest.CheckLedger(t, &l)
	f.CheckNone(t, record.Note)
}
