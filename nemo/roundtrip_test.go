package nemo_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store/rocksfile"
)

func randomOptions() fixtures.Options {
	return fixtures.Options{DB: "0", Limits: nemo.New().Limits()}
}

// fill writes records by type, as conversions do, and returns the target's own reading.
func fill(t testing.TB, dst format.Target, memory int64, read func(record.TypeSet) record.Reader) format.Source {
	t.Helper()
	for n, group := range dst.Groups() {
		w, err := dst.Shard(n, "0", group, memory)
		if err != nil {
			t.Fatal(err)
		}
		if err := fixtures.Pump(w, read(group)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	src, err := dst.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

func sum(t testing.TB, r record.Reader) *record.Fingerprint {
	t.Helper()
	f, err := fixtures.Sum(r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// checkEqual compares fingerprints; nemo keeps seconds.
func checkEqual(t testing.TB, got, want *record.Fingerprint) {
	t.Helper()
	for _, p := range got.Diff(want, true) {
		t.Errorf("database %s, %s: read back %+v, wrote %+v", p.DB, p.Type, got.Parts()[p], want.Parts()[p])
	}
	if len(want.Parts()) == 0 {
		t.Error("nothing was written")
	}
}

// TestRoundTrip writes random records and reads them back, with plenty of memory and with so little that
// everything that can spill does.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(12) {
		for _, memory := range []int64{0, 32 << 10} {
			t.Run(fmt.Sprintf("seed %d memory %d", seed, memory), func(t *testing.T) {
				read := func(types record.TypeSet) record.Reader {
					o := randomOptions()
					o.Types = types
					return fixtures.Records(seed, 60, o)
				}
				m := newMemory(t)
				src := fill(t, m.create(t, format.CreateOptions{TempDir: t.TempDir(), Version: int32(seed)}), memory, read)
				var want record.Fingerprint
				for _, typ := range src.Types("0").Types() {
					want.Merge(sum(t, read(record.Of(typ))))
				}
				var l record.Ledger
				var f findings
				env := &format.Env{Now: fixtures.Clock, Memory: memory, TempDir: t.TempDir(), Ledger: &l, Report: f.report}
				checkEqual(t, sum(t, records(t, src, "0", env)), &want)
				checkLedger(t, &l)
				for _, x := range f.all {
					t.Errorf("finding %+v", x)
				}
			})
		}
	}
}

// TestRoundTripOnDisk goes through RocksDB directories, and through several key lengths more than lanes
// may be open.
func TestRoundTripOnDisk(t *testing.T) {
	read := func(types record.TypeSet) record.Reader { return &manyLengths{types: types} }
	dir := filepath.Join(t.TempDir(), "new")
	dst, err := nemo.New().Create(context.Background(), dir, &format.CreateOptions{Create: rocksfile.Create,
		Reopen: &format.OpenOptions{Store: rocksfile.Open}, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	src := fill(t, dst, 1<<20, read)
	var want record.Fingerprint
	for _, typ := range src.Types("0").Types() {
		want.Merge(sum(t, read(record.Of(typ))))
	}
	var l record.Ledger
	var f findings
	env := &format.Env{Ledger: &l, Report: f.report, TempDir: t.TempDir()}
	checkEqual(t, sum(t, records(t, src, "0", env)), &want)
	checkLedger(t, &l)
	for _, x := range f.all {
		t.Errorf("finding %+v", x)
	}
	if src.Size("0", record.AllTypes) == 0 {
		t.Error("size 0")
	}
}
