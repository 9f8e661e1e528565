package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvferry/blackwidow"
	"kvferry/catalog"
	"kvferry/convert"
	"kvferry/convert/plan"
	"kvferry/convert/transfer"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/inspect/verify"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/text/jsonl"
	"kvferry/internal/text/page"
	"kvferry/kvrocks"
	"kvferry/record"
	"kvferry/redis"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func part(db, typ string, records, elements int64) convert.PartDigest {
	return convert.PartDigest{DB: jsonl.Text(db), Type: typ, Digest: record.Digest{Records: records, Elements: elements}}
}

func sample(typ, key, detail string) convert.Sample {
	return convert.Sample{Type: typ, Key: []byte(key), Detail: detail, DB: "0"}
}

// converted is the report of a conversion on disk. Names have a byte that a terminal obeys.
func converted() *convert.Report {
	return &convert.Report{File: "new/db.kvferry.json", Now: now, Workers: 2,
		Options: map[string]string{"instances": "3", "slots": "1024"},
		Source: convert.Dataset{Path: "/old/\x1bdb", Format: "blackwidow", Store: "rocksdb", DBs: plan.Names{"0", "1"}, Files: 12,
			Bytes: 3 << 20},
		Target: convert.Dataset{Path: "/new/db", Format: "kvrocks", Store: "rocksdb", DBs: plan.Names{"__namespace", "1"},
			Files: 1, Bytes: 1000},
		Parts: []convert.PartDigest{part("0", "hash", 1200, 5400), part("1", "string", 3, 3)},
		Ledger: []convert.Account{
			{Keyspace: "hashes/data\x1b", Rows: 5400, Classes: map[string]int64{"copied": 5390, "stale": 10}, Check: "ok",
				Entries: convert.Entries{Read: 5410, Visible: 5400, Superseded: 4, Tombstones: 3, RangeDeleted: 2, Folded: 1}},
			{Keyspace: "lists/default", Classes: map[string]int64{}, Check: "ok"}, {Keyspace: "lists/data", Classes: map[string]int64{}, Check: "ok"},
			{Keyspace: "strings/default", Rows: 3, Classes: map[string]int64{"copied": 3}, Check: "ok", Entries: convert.Entries{Read: 4, Visible: 3, Folded: 1}},
		},
		Losses: []convert.LossKind{
			{Kind: "expiry-ms", Count: 2, Allowed: true, Samples: []convert.Sample{sample("hash", "k\x1b", "1 ms"), sample("string", "l", "2 ms")}},
			{Kind: "inner-nul", Count: 1001, Drops: true, Samples: []convert.Sample{sample("hash", "n", "")}},
			{Kind: record.LossDamaged, Count: 1, Drops: true, Allowed: true, Samples: []convert.Sample{sample("hash", "unseen", "")}},
			{Kind: "hyperloglog", Count: 1, Note: true},
		},
		Findings: []convert.FindingKind{{Kind: "short-value", Severity: "error", Count: 2,
			Samples: []convert.Sample{sample("hash", "short", "1 byte")}}},
		Proof: convert.Proof{Done: true, Unit: "ms"}, Timings: convert.Timings{Run: 1.5, Finish: 0.5, Prove: 1, Total: 3},
	}
}

// TestPrint: every part of a report, in the words of testdata/report.txt.
func TestPrint(t *testing.T) {
	var told strings.Builder
	for _, c := range []struct {
		name    string
		compare string
		only    filter.Conditions
		change  func(r *convert.Report)
	}{
		{"a conversion", "kvferry diff a b", nil, func(*convert.Report) {}},
		{"filtered", "", filter.Conditions{"type": {"hash"}, "match": {"a b*"}}, func(r *convert.Report) {
			r.Losses, r.Findings, r.Parts = nil, nil, r.Parts[:1]
		}},
		{"resumed, beside an earlier one, in parts", "", nil, func(r *convert.Report) {
			r.Losses, r.Findings, r.Earlier, r.Timings.Resumed = nil, nil, "/new/\n/db.1.kvferry.json", true
			r.Proof = convert.Proof{Done: true, Unit: "s", Parts: 4, Cached: "no fadvise", Expired: 1, ExpiredFields: 2}
		}},
		{"a ledger that does not add up", "", nil, func(r *convert.Report) {
			r.Losses, r.Findings, r.Proof = nil, nil, convert.Proof{Why: "--no-prove"}
			r.Ledger[0].Check, r.Ledger[3].Check = "1 row \x1bmissing", "2 rows more"
		}},
		{"a server", "", nil, func(r *convert.Report) {
			r.Losses, r.Findings, r.File = nil, nil, "report.json"
			r.Target = convert.Dataset{Path: "redis://host:6379", Format: "redis", DBs: plan.Names{"0", "1"}, Files: 5, Bytes: 5}
			r.Proof = convert.Proof{Counted: true, Why: "keys: 1,203 before and after"}
			r.Skipped = []convert.PartDigest{part("0", "hash", 5, 6), part("0", "set", 7, 8)}
			r.Follow = &convert.Following{Commands: []string{"slaveof a 1", "slaveof b 2"}, Conditions: []string{"the binlog is whole"}}
		}},
		{"a dry run", "kvferry diff a b", nil, func(r *convert.Report) {
			r.Losses, r.Findings, r.DryRun, r.Proof, r.Workers = nil, nil, true, convert.Proof{}, 1
			r.Timings = convert.Timings{Prepare: 60, Preparation: "replay", Run: 0.5, Total: 61}
			r.Estimate = &convert.Estimate{TargetBytes: 5 << 20, TempBytes: 1 << 20, Seconds: 100, Prepare: 60, Run: 20,
				Finish: 10, Prove: 10, SampleBytes: 100, SourceBytes: 100,
				Volumes: []convert.Volume{{Path: "/new", Target: true, Temp: true, Needed: 6 << 20, Free: 6 << 20}}}
		}},
		{"a sample", "", nil, func(r *convert.Report) {
			r.Losses, r.Findings, r.DryRun, r.Proof, r.Sampled, r.Unseen = nil, nil, true, convert.Proof{}, true, []string{"list",
				"stream"}
			r.Estimate = &convert.Estimate{TargetBytes: 5 << 20, Seconds: 10, Run: 10, SampleBytes: 1 << 20, SourceBytes: 3 << 20,
				Volumes: []convert.Volume{{Path: "/new\x1b", Target: true, Needed: 5 << 20, Free: 5<<20 - 1},
					{Path: "/tmp", Temp: true, Needed: 1, Free: -1}}}
		}},
	} {
		r := converted()
		c.change(r)
		var b strings.Builder
		Print(&b, r, c.only, c.compare)
		fmt.Fprintf(&told, "--- %s\n%s", c.name, strings.ReplaceAll(b.String(), abs(t, "."), "WORKDIR"))
	}
	formattest.CheckOutcomes(t, "testdata/report.txt", told.String())
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRunbook: every part of a runbook, in the words of testdata/runbook.txt.
func TestRunbook(t *testing.T) {
	cat, here := catalog.Default(), t.TempDir()
	driver := &cat.Drivers[0]
	same := convert.LossKind{Kind: record.LossSameName, Count: 3, Drops: true, Avoid: "--on-conflict rename",
		Samples: []convert.Sample{sample("hash", "twice", "")}}
	var told strings.Builder
	for _, c := range []struct {
		name   string
		change func(b *Runbook)
	}{
		{"nothing is lost", func(b *Runbook) { b.Report.Losses = b.Report.Losses[3:] }},
		{"losses of all kinds", func(*Runbook) {}},
		{"names under several types, left out", func(b *Runbook) { b.Report.Losses = []convert.LossKind{same} }},
		{"names under several types, renamed", func(b *Runbook) {
			same := same
			b.Rename, same.Drops = true, false
			b.Report.Losses = []convert.LossKind{same}
		}},
		{"an estimate of an unsound source", func(b *Runbook) {
			b.Report.Losses, b.Report.Sampled = nil, true
			b.Report.Estimate = &convert.Estimate{TargetBytes: 5 << 20, Seconds: 100,
				Volumes: []convert.Volume{{Path: "/new", Target: true, Needed: 5, Free: 4},
					{Path: "/tmp", Temp: true, Needed: 1, Free: -1}}}
			b.Checked.Counts = []verify.KindCount{{Kind: "orphan-rows", Severity: record.Warning, Count: 1}}
		}},
		{"a note about the source", func(b *Runbook) {
			b.Report.Losses = nil
			b.Checked.Counts = []verify.KindCount{{Kind: "left-behind", Severity: record.Note, Count: 1}}
		}},
		{"a server", func(b *Runbook) {
			b.Report.Losses, b.Goal, b.Report.Target.Path = nil, "redis://host:6379", "redis://host:6379"
			b.Report.Follow = &convert.Following{Commands: []string{"slaveof a 1"}, Conditions: []string{"the binlog is whole"}}
		}},
		{"an upload of a directory, from an object store", func(b *Runbook) {
			b.Report.Losses, b.Goal, b.Report.Target.Path = nil, "kvrocks:s3://b/new/db", "s3://b/new/db"
			b.From.Location.Path = "s3://a/old/db"
		}},
		{"an upload of a file", func(b *Runbook) {
			b.Report.Losses, b.Goal, b.Report.Target.Path, b.Target = nil, "rdb:s3://b/new/dump.rdb", "s3://b/new/dump.rdb",
				redis.New()
			b.Report.Target.DBs = plan.Names{"0", "9", "15"}
		}},
		{"a cluster, and back with other names", func(b *Runbook) {
			b.Report.Losses, b.Report.Cluster, b.Goal = nil, true, "kvrocks:/new/db"
			b.Report.Back = &transfer.Back{RenameDB: []string{"__namespace=0"}}
			b.Report.Shape = format.Shape{Layout: format.LayoutDB}
		}},
		{"to Pika 4", func(b *Runbook) {
			b.Report.Losses, b.Goal, b.Target, b.From.Format = nil, "pika4:/new/db", floyd.New(), kvrocks.New()
			b.Report.Target.DBs = plan.Names{"0", "7"}
		}},
		{"from a server", func(b *Runbook) {
			f, err := cat.Format("redis")
			if err != nil {
				t.Fatal(err)
			}
			b.Report.Losses, b.From.Format = nil, f
		}},
	} {
		b := &Runbook{Source: "/old/db", Goal: "kvrocks:/new/db", Words: []string{"convert", "/old/db", "kvrocks:/new/db"},
			Report: converted(), Checked: &verify.Outcome{Records: 1203},
			From: &catalog.Found{Location: catalog.Location{Path: "/old/db"}, Format: blackwidow.New(),
				Driver: driver}, Target: kvrocks.New(),
			Compare: []string{"diff", "/old/db", "kvrocks:/new/db"}, Verify: "kvferry verify /old/db"}
		b.Report.Source.Path = "/old/db"
		c.change(b)
		fmt.Fprintf(&told, "--- %s\n%s", c.name, b.Markdown())
	}
	formattest.CheckOutcomes(t, "testdata/runbook.txt", told.String())
	b := &Runbook{Report: converted(), Checked: new(verify.Outcome)}
	for path, want := range map[string]bool{filepath.Join(here, "db"): false, filepath.Join(here, "no", "db"): true,
		"s3://b/no/db": false, "redis://host:6379": false} {
		b.Report.Target.Path = path
		b.b.Reset()
		b.before()
		if strings.Contains(b.b.String(), "mkdir -p") != want {
			t.Errorf("%s: %s", path, b.b.String())
		}
	}
}

// TestWithTitle: the lines that name source and target come again if they scroll off the screen, which counts long lines
// as several.
func TestWithTitle(t *testing.T) {
	for _, c := range []struct {
		lines, width, columns, rows int
		again                       bool
	}{{5, 10, 80, 6, false}, {5, 10, 80, 5, true}, {5, 10, 80, 0, false}, {5, 100, 80, 10, true}, {5, 80, 80, 6, false},
		{5, 81, 80, 6, true}, {2, 10, 0, 80, false}} {
		text := page.TextFor(nil)
		for i := range c.lines {
			fmt.Fprintf(text, "%d%s\n", i, strings.Repeat("x", c.width-1))
		}
		before := text.String()
		WithTitle(text, c.columns, c.rows)
		want := before
		title := strings.SplitAfter(before, "\n")[:2]
		if c.again {
			want += strings.Join(title, "")
		}
		if got := text.String(); got != want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
