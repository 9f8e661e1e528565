package blackwidow_test

import (
	"context"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
	"kvferry/store/rocksfile"
)

var goldens = []string{"bw-basic", "bw-edge"}

func openGolden(t testing.TB, name string) format.Source {
	t.Helper()
	src, err := blackwidow.New().Open(context.Background(), fixtures.Unpack(t, name), &format.OpenOptions{Store: rocksfile.Open})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// TestGoldens reads what the original engine wrote, and finds nothing wrong with it.
func TestGoldens(t *testing.T) {
	for _, name := range goldens {
		t.Run(name, func(t *testing.T) {
			var l record.Ledger
			var f findings
			src := openGolden(t, name)
			got := lines(t, records(t, src, "0", &format.Env{Ledger: &l, Report: f.report, Deep: true}))
			compareLines(t, got, fixtures.Truth(t, name))
			checkLedger(t, &l)
			for _, x := range f.all {
				if x.Severity > record.Note {
					t.Errorf("finding %+v", x)
				}
			}
			for _, k := range src.Keyspaces() {
				t.Logf("%s: %s", k.Name, classes(&l, k.Name))
			}
		})
	}
}
