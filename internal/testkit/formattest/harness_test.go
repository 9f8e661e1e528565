package formattest_test

import (
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

// TestHarness runs a format through the harness: in memory, on disk, and on its golden databases.
func TestHarness(t *testing.T) {
	f := nemo.New()
	written := []record.Class{record.Copied, record.Index, record.Housekeeping}
	formattest.RoundTrips(t, f, fixtures.Options{DB: "0", Limits: f.Limits(), Short: true}, written...)
	read := func(types record.TypeSet) record.Reader { return formattest.NewLengths([]int{1, 9}, types, true) }
	src := formattest.Fill(t, formattest.CreateRocksDB(t, f, filepath.Join(t.TempDir(), "new")), 0, read)
	formattest.CheckClean(t, src, 0, read, written...)

	const golden = "nemo-basic"
	got := formattest.Lines(t, formattest.Records(t, formattest.OpenGolden(t, f, golden), "0", &format.Env{}))
	formattest.CompareLines(t, got, fixtures.Truth(t, golden))

	m := formattest.NewMemory(t, f)
	m.Declare("kv", "set")
	m.Store("set").Put("default", []byte("Sk"), nil)
	if got := m.Open(t).Types("0"); got != record.Of(record.String, record.Set) {
		t.Errorf("types %v", got)
	}
}
