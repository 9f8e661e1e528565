package verify

import (
	"fmt"
	"testing"

	"kvferry/record"
)

// TestGroups checks that findings that may follow from others are summed up by store, type and kind, and found again
// after a merge, however few of them are kept.
func TestGroups(t *testing.T) {
	miss := func(key string, missing int64, none bool) record.Finding {
		return record.Finding{Kind: "count-mismatch", Severity: record.Error, DB: "0", Type: record.Hash, Key: []byte(key),
			Place: record.Place{File: "hash/1.sst"}, Missing: missing, None: none}
	}
	all, one := newCollector(2), newCollector(2)
	all.report(record.Finding{Kind: record.FindFileSize, Severity: record.Error, Place: record.Place{File: "hash/2.sst"}})
	for _, f := range []record.Finding{miss("b", 3, true), miss("a", 1, false),
		{Kind: "bad-value", Severity: record.Error, Key: []byte("x")}} {
		all.report(f)
	}
	one.report(miss("c", 5, true))
	one.report(record.Finding{Kind: "orphan-rows", Severity: record.Warning, Key: []byte("s"), Place: record.Place{File: "set/1.sst"}})
	all.merge(one)
	got := all.groups.list()
	if len(got) != 2 || fmt.Sprintf("%s %d %s %s %d %d", got[0].Store, got[0].Count, got[0].First, got[0].Last, got[0].Missing,
		got[0].None) != "hash 3 a c 9 2" ||
		got[1].Store != "set" {
		t.Errorf("%+v", got)
	}
	v := &Outcome{}
	v.Findings, _, _ = all.findings()
	v.Findings = append(v.Findings, record.Finding{Kind: "orphan-rows", Place: record.Place{File: "set/1.sst"}},
		miss("z", 1, true))
	if causes := fmt.Sprint(v.Causes()); len(v.Findings) != 4 || causes != "[-1 -1 -1 0]" && causes != "[-1 0 -1 0]" {
		t.Errorf("causes %s of %+v", causes, v.Findings)
	}
}

// TestGroupsAreBounded checks that databases beyond a number share their groups.
func TestGroupsAreBounded(t *testing.T) {
	gs := make(groups)
	for i := range 2 * maxGroups {
		gs.add(&record.Finding{Kind: "orphan-rows", DB: fmt.Sprint(i), Key: []byte("k")})
	}
	if n := len(gs); n != maxGroups+1 || gs[GroupID{Kind: "orphan-rows", Store: "."}].Count != maxGroups {
		t.Errorf("%d groups", n)
	}
}
