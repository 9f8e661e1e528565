package kvrocks_test

import (
	"fmt"
	"slices"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/pass/sorted"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/record"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// written lists the classes of rows that a target writes.
var written = []record.Class{record.Copied, record.Index}

// checkClean reads a namespace and compares it with the written records: the rows add up, all have classes that a
// target writes, and even a deep pass has no findings.
func checkClean(t *testing.T, src format.Source, db string, memory int64, want *record.Fingerprint) {
	t.Helper()
	for _, deep := range []bool{false, true} {
		var l record.Ledger
		var f formattest.Findings
		env := &format.Env{Now: fixtures.Clock, Memory: memory, TempDir: t.TempDir(), Ledger: &l, Report: f.Report, Deep: deep}
		r := formattest.Records(t, src, db, env)
		if !src.Sorted() {
			r = record.Walk(sorted.Records(r.Reader, sorted.Options{TempDir: t.TempDir()}))
		}
		formattest.CheckEqual(t, formattest.Sum(t, r), want, false)
		formattest.CheckLedger(t, &l)
		formattest.CheckClasses(t, &l, written...)
		f.All = slices.DeleteFunc(f.All, func(x record.Finding) bool { return x.Kind == kvrocks.FindOldGroups })
		f.CheckNone(t, record.Note)
	}
}

// TestRoundTrips writes random records in the dialect of each server, and as a node of a cluster, and reads them back.
func TestRoundTrips(t *testing.T) {
	for _, server := range []string{"", "kvrocks2.3", "kvrocks2.9", "kvrocks2.15", "kvrocks2.17", "cluster"} {
		for seed := range uint64(8) {
			for _, memory := range []int64{0, 32 << 10} {
				t.Run(fmt.Sprintf("%s seed %d memory %d", server, seed, memory), func(t *testing.T) {
					f := kvrocks.New().(format.Served).For(server)
					o := fixtures.Options{DB: "0", Limits: f.Limits(), Types: record.RedisTypes, Expired: true}
					co := format.CreateOptions{TempDir: t.TempDir(), Now: fixtures.Clock, DBs: []string{"0"}}
					if server == "cluster" {
						f = kvrocks.New()
						o.DB, co.Cluster, co.DBs = kvrocks.DefaultNamespace, true, []string{kvrocks.DefaultNamespace}
					}
					o.Limits.Seconds = server == "kvrocks2.3"
					dst := formattest.NewMemory(t, f).Create(t, co)
					fillShard(t, dst, 0, o.DB, memory, fixtures.Records(seed, 200, o))
					src := formattest.Finish(t, dst)
					checkClean(t, src, o.DB, memory, formattest.Sum(t, fixtures.Records(seed, 200, o)))
					if seed == 0 && memory == 0 {
						formattest.CheckLookups(t, src, o.DB)
					}
				})
			}
		}
	}
}

// TestLengths round-trips through files, with more lengths of keys than open lanes are allowed.
func TestLengths(t *testing.T) {
	var lengths []int
	for n := range 90 {
		lengths = append(lengths, n)
	}
	lengths = append(lengths, 255, 256, 257, 65536, 70000)
	for _, typ := range []record.Type{record.Hash, record.List, record.Set, record.ZSet} {
		for _, byName := range []bool{true, false} {
			read := func(record.TypeSet) record.Reader { return formattest.NewLengths(lengths, record.Of(typ), byName) }
			dst := formattest.Create(t, kvrocks.New(), t.TempDir()+"/new",
				&format.CreateOptions{Create: build.Create, DBs: []string{"0"},
					Reopen: &format.OpenOptions{Store: rocks.Open}, TempDir: t.TempDir(), Now: fixtures.Clock})
			src := formattest.Fill(t, dst, 1<<20, read)
			checkClean(t, src, "0", 1<<20, formattest.Sum(t, read(0)))
			if src.Size("0", record.AllTypes) == 0 {
				t.Error("size 0")
			}
		}
	}
}
