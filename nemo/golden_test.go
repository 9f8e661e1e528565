package nemo_test

import (
	"context"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store/rocksfile"
)

var goldens = []string{"nemo-basic", "nemo-basic-zlib"}

func openGolden(t testing.TB, name string) format.Source {
	t.Helper()
	src, err := nemo.New().Open(context.Background(), fixtures.Unpack(t, name), &format.OpenOptions{Store: rocksfile.Open})
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
			got := lines(t, records(t, src, "0", &format.Env{Ledger: &l, Report: f.report}))
			compareLines(t, got, fixtures.Truth(t, name))
			checkLedger(t, &l)
			for _, x := range f.all {
				t.Errorf("finding %+v", x)
			}
			for _, k := range []string{"kv", "hash", "list", "set", "zset"} {
				t.Logf("%s: %s", k, classes(&l, k))
			}
		})
	}
}
