package render

import (
	"strings"
	"testing"

	"kvferry/inspect/verify"
	"kvferry/record"
)

// TestVerdictParts: how many more causes there are, of how many keys meta rows are missing, whose words about the loss
// count, and what to do next.
func TestVerdictParts(t *testing.T) {
	block := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Place: record.Place{File: "a/1.sst"}, Detail: "its checksum differs; the rest is read"}
	orphan := record.Finding{Kind: "orphan-rows", Severity: record.Warning, Place: record.Place{File: "a/2.sst"}}
	bad := record.Finding{Kind: "zset-bad-score", Severity: record.Error, Place: record.Place{File: "a/1.sst"}}
	sure := orphan
	sure.Sure = "by the log"
	log := record.Finding{Kind: "damaged-file", Severity: record.Error, Place: record.Place{File: "7.log"}, Lost: "the end of it"}
	const help = "kvferry help findings"
	for _, c := range []struct {
		name     string
		rest     string
		unread   []string
		orphans  int64
		findings []record.Finding
		want     Verdict // those that are not empty
	}{
		{"one cause", "dump", nil, 0, []record.Finding{block}, Verdict{Cause: "damaged-block in a/1.sst: its checksum differs", Next: "dump", Sure: "a lower bound; a key whose rows are all in the unreadable part leaves no trace"}},
		{"causes", "dump", nil, 0, []record.Finding{block, block, bad, block}, Verdict{Cause: "damaged-block in a/1.sst: its checksum differs, and 2 more"}},
		{"an orphan", "dump", nil, 1, []record.Finding{block, orphan},
			Verdict{Sure: "a lower bound; a key whose rows are all in the unreadable part leaves no trace; rows without a meta row, which may also remain from deleted keys: of 1 key"}},
		{"an orphan of another store", "dump", nil, 0, []record.Finding{bad, orphan}, Verdict{Sure: "everything was read; see the errors above"}},
		{"a warning that is sure", "dump", nil, 0, []record.Finding{sure}, Verdict{Sure: "by the log", Next: help, Lost: "nothing"}},
		{"a warning that is sure, beside an error", "dump", nil, 0, []record.Finding{sure, bad}, Verdict{Sure: "everything was read; see the errors above", Next: "dump"}},
		{"a file that says what it lost", "dump", nil, 0, []record.Finding{log}, Verdict{Lost: "the end of it", Next: "dump"}},
		{"no command for the rest", "", nil, 0, []record.Finding{bad}, Verdict{Next: help}},
		{"no command for the rest, and parts that were not read", "", []string{"kv"}, 0, []record.Finding{bad}, Verdict{Next: help + `, "What cannot be passed over"`}},
		{"parts that were not read", "dump", []string{"kv"}, 0, []record.Finding{bad}, Verdict{Next: help + `, "What cannot be passed over"`, Lost: "unreadable data: kv"}},
	} {
		v := verify.Outcome{Gravest: c.findings, Unread: c.unread}
		if c.orphans > 0 {
			v.Groups = []verify.Group{{GroupID: verify.GroupID{Kind: "orphan-rows", Severity: record.Warning, Store: "a"},
				Count: c.orphans}}
		}
		counts := map[string]int{}
		for _, f := range c.findings {
			i, ok := counts[f.Kind]
			if !ok {
				i = len(v.Counts)
				counts[f.Kind] = i
				v.Counts = append(v.Counts, verify.KindCount{Kind: f.Kind, Severity: f.Severity})
			}
			v.Counts[i].Count++
		}
		got := (&Result{Outcome: &v, Rest: c.rest}).Verdict()
		for _, pair := range [][3]string{{"cause", got.Cause, c.want.Cause}, {"how sure", got.Sure, c.want.Sure},
			{"next", got.Next, c.want.Next}, {"lost", got.Lost, c.want.Lost}} {
			if pair[2] != "" && pair[1] != pair[2] {
				t.Errorf("%s: %s: %s\nwant %s", c.name, pair[0], pair[1], pair[2])
			}
		}
	}
	if line := (&Result{Source: "x", Outcome: new(verify.Outcome)}).Line(); line != "x: sound" || strings.Contains(line, ";") {
		t.Error(line)
	}
}
