package result

import (
	"fmt"
	"strings"
	"testing"

	"kvferry/record"
)

func TestFindingsMergeInOrder(t *testing.T) {
	var a Findings
	for range 7 {
		a.Report(record.Finding{Kind: "k", Severity: record.Warning, Keyspace: "hash", Detail: "d"})
	}
	a.Report(record.Finding{Kind: "y", Severity: record.Note, Times: 3})
	a.Report(record.Finding{Kind: "z", Severity: record.Error, Place: record.Place{File: "f", Off: 9}, Detail: "d"})
	var b Findings
	b.Merge(a.List())
	b.Merge(a.List())
	got := b.List()
	if len(got) != 3 || got[0].Kind != "z" || got[1].Count != 14 || len(got[1].Samples) != maxSamples || got[2].Count != 6 {
		t.Errorf("%+v", got)
	}
	if got[0].Samples[0].Detail != "d [f, offset 9]" || got[1].Samples[0].Detail != "d [hash]" {
		t.Errorf("%+v", got)
	}
}

// TestCausesComeFirst checks that samples of a loss list unreadable data before its consequences.
func TestCausesComeFirst(t *testing.T) {
	follows := FindingKind{Kind: record.FindLedger, Severity: record.Error.String(), Count: 2, Samples: []Sample{{Detail: "follows"}}}
	cause := FindingKind{Kind: record.FindDamagedBlock, Severity: record.Error.String(), Count: 1, Samples: []Sample{{Detail: "cause"}}}
	harmless := FindingKind{Kind: record.FindDamagedBlock, Severity: record.Note.String(), Count: 9, Samples: []Sample{{Detail: "none"}}}
	for _, list := range [][]FindingKind{{follows, cause, harmless}, {harmless, cause, follows}} {
		got := LossesOf(list)
		if len(got) != 1 || got[0].Kind != record.LossDamaged || got[0].Count != 3 || len(got[0].Samples) == 0 ||
			!strings.Contains(got[0].Samples[0].Detail, "cause") {
			t.Errorf("%+v", got)
		}
	}
}

// TestFindings checks that findings are counted by kind, that the first ones are kept with their places, and that the
// most severe kinds come first.
func TestFindings(t *testing.T) {
	place := record.Place{File: "000012.sst", Off: 77}
	var tasks [2]Findings
	losses, errs := "", 0
	for i := range tasks {
		tasks[i].OnLoss, tasks[i].OnError = func(kind string) { losses += kind + " " }, func() { errs++ }
	}
	for i := range 4 {
		tasks[0].Report(record.Finding{Kind: "count", Severity: record.Error, DB: "0", Type: record.Hash,
			Key: []byte{'a' + byte(i)}, Place: place, Detail: fmt.Sprint(i)})
		tasks[1].Report(record.Finding{Kind: "count", Severity: record.Error, DB: "1", Keyspace: "meta", Detail: fmt.Sprint(i)})
	}
	tasks[0].Report(record.Finding{Kind: "a warning", Severity: record.Warning, Place: record.Place{File: "CURRENT", Off: -1},
		Detail: "d"})
	tasks[0].Report(record.Finding{Kind: "another", Severity: record.Warning})
	tasks[1].Report(record.Finding{Kind: record.LossStreamGroups, Severity: record.Note, Detail: "g"})
	tasks[1].Report(record.Finding{Kind: record.LossCommand, Severity: record.Note, Detail: "c"})
	var all Findings
	all.Merge(tasks[0].List())
	all.Merge(tasks[1].List())
	want := `[{count error 8 [hash "a" in database 0 (0 [000012.sst, offset 77]) hash "b" in database 0 (1 [000012.sst, offset 77]) ` +
		`hash "c" in database 0 (2 [000012.sst, offset 77]) hash "d" in database 0 (3 [000012.sst, offset 77]) in database 1 (0 [meta])]} ` +
		`{a warning warning 1 [(d [CURRENT])]} {another warning 1 []} {aof-command note 1 [(c)]} {stream-groups note 1 [(g)]}]`
	if got := fmt.Sprint(all.List()); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if want := "damaged damaged damaged damaged damaged damaged damaged damaged stream-groups aof-command "; losses != want ||
		errs != 8 {
		t.Errorf("losses %s, %d errors", losses, errs)
	}
	want = `[{aof-command 1 true false false  [(c)]} {damaged 8 true false false  [hash "a" in database 0 (count: 0 [000012.sst, offset 77]) ` +
		`hash "b" in database 0 (count: 1 [000012.sst, offset 77]) hash "c" in database 0 (count: 2 [000012.sst, offset 77]) ` +
		`hash "d" in database 0 (count: 3 [000012.sst, offset 77]) in database 1 (count: 0 [meta])]} {stream-groups 1 true false false  [(g)]}]`
	if got := fmt.Sprint(LossesOf(all.List())); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

// TestLossOf: findings of errors are damage, or rows of a newer server; of others only those that name a loss.
func TestLossOf(t *testing.T) {
	for _, c := range []struct {
		kind  string
		s     record.Severity
		want  string
		drops bool
	}{
		{"count-mismatch", record.Error, record.LossDamaged, true}, {"count-mismatch", record.Warning, "", false}, {record.FindNewer, record.Error, record.LossNewer, true},
		{record.FindNewer, record.Warning, "", false}, {record.LossScorePrecision, record.Warning, record.LossScorePrecision, false},
		{record.LossStreamGroups, record.Warning, record.LossStreamGroups, true}, {record.LossMemberExpiry, record.Note, record.LossMemberExpiry, true},
		{record.LossCommand, record.Note, record.LossCommand, true},
	} {
		if got := LossOf(c.kind, c.s.String()); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.s, c.kind, got, c.want)
		}
		losses := LossesOf([]FindingKind{{Kind: c.kind, Severity: c.s.String(), Count: 2}})
		if len(losses) != min(1, len(c.want)) || len(losses) > 0 && (losses[0].Drops != c.drops || losses[0].Count != 2) {
			t.Errorf("%s %s: %+v", c.s, c.kind, losses)
		}
	}
}
