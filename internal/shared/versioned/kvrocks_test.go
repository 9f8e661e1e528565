package versioned_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/pass/sorted"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/record"
)

// TestSharedKeyspaces reads types that share a keyspace, some with rows that are not elements, also in a cluster, out
// of key order; deleted records come back.
func TestSharedKeyspaces(t *testing.T) {
	for _, name := range []string{"kvrocks-mixed", "kvrocks-cluster"} {
		var l record.Ledger
		var f formattest.Findings
		src := formattest.OpenGolden(t, kvrocks.New(), name)
		env := &format.Env{Ledger: &l, Report: f.Report, Now: time.Unix(2_000_000_000, 0), Deep: true, TempDir: t.TempDir()}
		sort := func(r record.Reader) *record.Walker {
			return record.Walk(sorted.Records(r, sorted.Options{TempDir: env.TempDir}))
		}
		live := heads(t, sort(formattest.Records(t, src, kvrocks.DefaultNamespace, env).Reader))
		formattest.CheckLedger(t, &l)
		if kinds := slices.Compact(slices.Sorted(slices.Values(f.Kinds()))); !slices.Contains(kinds, versioned.FindOrphanRows) {
			t.Errorf("%s: found %q", name, kinds)
		}
		told := 0
		r, err := formattest.Walk(src.(format.Undead).DeadRecords(context.Background(), kvrocks.DefaultNamespace, record.AllTypes,
			format.Span{}, env, func([]byte, record.Type, string) { told++ }))
		if err != nil {
			t.Fatal(err)
		}
		dead := heads(t, sort(r.Reader))
		for _, key := range dead {
			if slices.Contains(live, key) {
				t.Errorf("%s: %q is alive", name, key)
			}
		}
		if len(live) < 50 || len(dead) < 4 || told == 0 {
			t.Errorf("%s: %d records are alive, %d dead, of which %d have something unknown", name, len(live), len(dead), told)
		}
	}
}

// heads returns the keys of records.
func heads(t *testing.T, r *record.Walker) (out []string) {
	t.Helper()
	defer r.Close()
	for {
		h, err := r.Next()
		if err != nil {
			return out
		}
		out = append(out, string(h.Key))
	}
}

// TestSharedLookups: elements are looked up in keyspaces that types share, also those whose names have another form in
// row keys.
func TestSharedLookups(t *testing.T) {
	f := kvrocks.New().(format.Served).For("kvrocks2.17")
	o := fixtures.Options{DB: "0", Limits: f.Limits(), Types: record.RedisTypes, Expired: true}
	dst := formattest.NewMemory(t, f).Create(t, format.CreateOptions{TempDir: t.TempDir(), Now: fixtures.Clock, DBs: []string{"0"}})
	src := formattest.Fill(t, dst, 0, func(types record.TypeSet) record.Reader {
		o := o
		o.Types &= types
		return fixtures.Records(0, 100, o)
	})
	formattest.CheckLookups(t, src, "0")
}
