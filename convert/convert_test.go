package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

var testNow = time.Unix(1700000000, 0).UTC()

// oneTask is the weight of a record that fills a task.
const oneTask = 16 << 20

// bench is a source on disk and the options to convert it.
type bench struct {
	t    *testing.T
	dir  string
	from *fake.Format
	to   *fake.Format
	o    Options
}

func newBench(t *testing.T, records []fake.Record) *bench {
	b := openBench(t, t.TempDir())
	if err := os.Mkdir(filepath.Join(b.dir, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	var data []byte
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, line...)
	}
	b.write("src/000000.json", data)
	b.write("src/CURRENT", []byte("whole"))
	return b
}

// openBench returns the bench in a directory.
func openBench(t *testing.T, dir string) *bench {
	b := &bench{t: t, dir: dir, from: fake.NewFormat(), to: fake.NewFormat()}
	src := filepath.Join(dir, "src")
	b.o = Options{
		Source: Input{Format: b.from, Store: "files", Path: src,
			Open: func(ctx context.Context, change func(*store.Options)) (format.Source, error) {
				var o format.OpenOptions
				change(&o.Options)
				return b.from.Open(ctx, src, &o)
			}},
		Target:  Output{Format: b.to, Store: "files", Path: filepath.Join(dir, "dst")},
		Now:     testNow,
		Workers: 2,
		Layout:  format.LayoutDB,
	}
	return b
}

func (b *bench) write(name string, data []byte) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// filtered returns a selection by a filter alone.
func filtered(f filter.Filter) *filter.Selection { return &filter.Selection{Filter: f} }

// run converts and requires success.
func (b *bench) run() *Report {
	b.t.Helper()
	rep, err := Run(context.Background(), &b.o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.leaves("dst", "dst.kvferry-report.json", "src")
	return rep
}

// fails converts and requires an error that contains text and no report, with no files left behind.
func (b *bench) fails(text string) error {
	b.t.Helper()
	rep, err := Run(context.Background(), &b.o)
	if err == nil || !strings.Contains(err.Error(), text) {
		b.t.Fatalf("error %v, want one with %q", err, text)
	}
	if rep != nil {
		b.t.Errorf("a report of what is not published: %+v", rep)
	}
	b.leaves("src")
	return err
}

// leaves compares the names in the directory.
func (b *bench) leaves(names ...string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if !slices.Equal(have, names) {
		b.t.Errorf("left %q, want %q", have, names)
	}
}

// tree returns the target's files and their bytes.
func (b *bench) tree() string {
	b.t.Helper()
	var out strings.Builder
	root := filepath.Join(b.dir, "dst")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&out, "%s\n%s\n", strings.TrimPrefix(path, root), data)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.String()
}

func TestRun(t *testing.T) {
	b := newBench(t, fake.Dataset(2))
	b.from.Wrap = func(s *fake.Source) { s.Weight = 3 * oneTask }
	rep := b.run()
	if rep.Records() != 120 || !rep.Proof.Done || rep.Proof.Unit != "milliseconds" {
		t.Errorf("records %d, proof %+v", rep.Records(), rep.Proof)
	}
	if len(rep.Parts) != 10 || rep.Parts[0].DB != "0" || rep.Parts[9].Type != "zset" {
		t.Errorf("parts %+v", rep.Parts)
	}
	if len(rep.Ledger) != 2 || rep.Ledger[0].Classes["copied"] != 180 || rep.Ledger[0].Check != "ok" {
		t.Errorf("ledger %+v", rep.Ledger)
	}
	read, err := ReadReport(ReportPath(b.o.Target.Path))
	if err != nil || read.Records() != 120 || read.Timings != rep.Timings {
		t.Errorf("published report: %+v, %v", read, err)
	}
}

func TestWorkersDoNotMatter(t *testing.T) {
	var want string
	for _, workers := range []int{1, 2, 7} {
		b := newBench(t, fake.Dataset(2))
		b.from.Wrap = func(s *fake.Source) { s.Weight = oneTask }
		b.o.Workers = workers
		b.run()
		got := b.tree()
		if want == "" {
			want = got
		} else if got != want {
			t.Errorf("%d workers write another tree", workers)
		}
	}
}

func TestExpired(t *testing.T) {
	records := fake.Dataset(1)
	records[0].ExpireMS = testNow.UnixMilli() - 1
	records[1].ExpireMS = testNow.UnixMilli() + 1
	b := newBench(t, records)
	rep := b.run()
	if rep.Records() != 59 || rep.Ledger[0].Classes["expired"] != 1 {
		t.Errorf("%d records, ledger %+v", rep.Records(), rep.Ledger)
	}
	b = newBench(t, records)
	b.o.Selection = &filter.Selection{KeepExpired: true}
	if rep := b.run(); rep.Records() != 60 {
		t.Errorf("kept: %d records", rep.Records())
	}
}

func TestSecondsSuffice(t *testing.T) {
	records := fake.Dataset(1)
	records[0].ExpireMS = testNow.UnixMilli() + 1500
	b := newBench(t, records)
	b.to.Bounds.Seconds = true
	b.to.Spoil = func(r *fake.Record) { r.ExpireMS = record.CeilSeconds(r.ExpireMS) * 1000 }
	if rep := b.run(); rep.Proof.Unit != "seconds" {
		t.Errorf("compared in %s", rep.Proof.Unit)
	}
	b = newBench(t, records)
	b.to.Spoil = func(r *fake.Record) { r.ExpireMS = record.CeilSeconds(r.ExpireMS) * 1000 }
	b.fails("database 0 string: fingerprint")
}

func TestFilters(t *testing.T) {
	b := newBench(t, fake.Dataset(2))
	b.o.Selection = filtered(filter.Filter{Types: record.Of(record.Hash, record.Set), DBs: []string{"1"}, Match: []string{"key0*"}})
	rep := b.run()
	for _, p := range rep.Parts {
		if p.DB != "1" || p.Type != "hash" && p.Type != "set" {
			t.Errorf("part %+v", p)
		}
	}
	if rep.Ledger[0].Classes["filtered"] == 0 || rep.Records() == 0 {
		t.Errorf("ledger %+v", rep.Ledger)
	}

	for text, f := range map[string]filter.Filter{
		"no record of":               {Match: []string{"nothing"}},
		"the source holds no stream": {Types: record.Of(record.Stream)},
		`no database "9"`:            {DBs: []string{"9"}},
	} {
		b := newBench(t, fake.Dataset(1))
		b.o.Selection = filtered(f)
		b.fails(text)
	}
}

func TestEmptySourceGivesAnEmptyTarget(t *testing.T) {
	b := newBench(t, nil)
	if rep := b.run(); rep.Records() != 0 || !rep.Proof.Done {
		t.Errorf("%+v", rep)
	}
}

func TestEmptyRecordsAreAbsent(t *testing.T) {
	records := append(fake.Dataset(1), fake.Record{DB: "0", Type: record.Set, Key: []byte("empty")})
	b := newBench(t, records)
	if rep := b.run(); rep.Records() != 60 {
		t.Errorf("%d records", rep.Records())
	}
}

func lossy() []fake.Record {
	records := fake.Dataset(1)
	for i, key := range []string{"lost1", "lost2", "note"} {
		records = append(records, fake.Record{DB: "0", Type: record.Set, Key: []byte(key),
			Elems: []record.Element{{Name: []byte(fmt.Sprint(i))}}})
	}
	return append(records, fake.Record{DB: "0", Type: record.ZSet, Key: []byte("scores"),
		Elems: []record.Element{{Name: []byte("far"), Score: 1e14}, {Name: []byte("near"), Score: 1}}})
}

func TestLossesRefuse(t *testing.T) {
	b := newBench(t, lossy())
	var loss *result.LossError
	if err := b.fails("2 × key-too-long, 1 × score-range"); !errors.As(err, &loss) {
		t.Fatalf("%T", err)
	}
	if len(loss.Losses) != 3 || len(loss.Refused()) != 2 || loss.Refused()[0].Count != 2 || len(loss.Refused()[0].Samples) != 2 {
		t.Errorf("losses %+v", loss.Losses)
	}
	if s := loss.Refused()[0].Samples[0].String(); s != `set "lost1" in database 0 (it is)` {
		t.Errorf("sample %s", s)
	}
	b.o.AllowLoss = []string{"key-too-long"}
	b.fails("refused: fake cannot hold everything: 1 × score-range")
}

func TestLossesAllowed(t *testing.T) {
	b := newBench(t, lossy())
	b.o.AllowLoss = []string{"key-too-long", "score-range"}
	rep := b.run()
	if rep.Records() != 62 || rep.Ledger[0].Classes["lost"] != 2+2+1 {
		t.Errorf("%d records, ledger %+v", rep.Records(), rep.Ledger)
	}
	if len(rep.Losses) != 3 || !rep.Losses[1].Allowed || !rep.Losses[0].Note {
		t.Errorf("losses %+v", rep.Losses)
	}
}

func TestTypesThatTheTargetLacks(t *testing.T) {
	records := append(fake.Dataset(1), fake.Record{DB: "0", Type: record.Stream, Key: []byte("s"),
		Elems: []record.Element{{Name: []byte("id")}}})
	b := newBench(t, records)
	b.fails("1 × stream")
	b.o.AllowLoss = []string{"stream"}
	if rep := b.run(); rep.Records() != 60 || rep.Ledger[0].Classes["lost"] != 2 {
		t.Errorf("%d records, ledger %+v", rep.Records(), rep.Ledger)
	}
}

func TestOneNameOneType(t *testing.T) {
	only := func() *bench {
		b := newBench(t, append(fake.Dataset(1), fake.Record{DB: "0", Type: record.ZSet, Key: []byte("key01")})) // no elements
		b.to.Bounds.SameName = false
		b.to.Groups = []record.TypeSet{record.AllTypes}
		return b
	}
	b := only()
	b.fails("30 × same-name")
	b.o.AllowLoss = []string{"same-name"}
	if rep := b.run(); rep.Records() != 30 || partOf(rep, "string") != 12 {
		t.Errorf("%+v", rep.Parts)
	}
	b = only()
	b.o.Prefer = []record.Type{record.ZSet, record.Set}
	rep := b.run()
	if rep.Records() != 30 || partOf(rep, "zset") != 12 || partOf(rep, "string") != 6 || !rep.Losses[0].Allowed {
		t.Errorf("%+v", rep.Parts)
	}
	b = only()
	b.from.Wrap = func(s *fake.Source) { s.Reversed = true }
	b.o.Prefer = []record.Type{}
	if rep := b.run(); partOf(rep, "string") != 12 {
		t.Errorf("%+v", rep.Parts)
	}
}

func partOf(rep *Report, typ string) int64 {
	for _, p := range rep.Parts {
		if p.Type == typ {
			return p.Records
		}
	}
	return 0
}

func TestDamageRefuses(t *testing.T) {
	damaged := func(s *fake.Source) {
		s.Findings = []record.Finding{{Kind: "count", Severity: record.Error, Type: record.Hash, DB: "0", Key: []byte("h"),
			Detail: "3, not 4"},
			{Kind: "garbage", Severity: record.Warning, Type: record.List}}
	}
	b := newBench(t, fake.Dataset(1))
	b.from.Wrap = damaged
	b.fails("the source is damaged: 1 error;")
	b.o.AllowLoss = []string{"damaged"}
	rep := b.run()
	if len(rep.Findings) != 2 || rep.Findings[0].Kind != "count" || rep.Findings[1].Severity != "warning" {
		t.Errorf("findings %+v", rep.Findings)
	}
	if len(rep.Losses) != 1 || rep.Losses[0].Samples[0].Detail != "count: 3, not 4" {
		t.Errorf("losses %+v", rep.Losses)
	}
}

func TestFailuresLeaveNothing(t *testing.T) {
	boom := errors.New("000012.sst: offset 77: checksum: want 1, have 2")
	b := newBench(t, fake.Dataset(1))
	b.from.Wrap = func(s *fake.Source) { s.ReadErr = boom }
	if err := b.fails("offset 77"); !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
	b = newBench(t, fake.Dataset(1))
	b.to.FailAfter = 3
	b.fails("no space left on device")

	b = newBench(t, fake.Dataset(1))
	b.to.Spoil = func(r *fake.Record) { r.Elems = r.Elems[:1] }
	var proof *ProofError
	if err := b.fails("the proof failed; the target was not published: database 0 hash: "); !errors.As(err, &proof) ||
		len(proof.Parts) != 4 {
		t.Errorf("%v", err)
	}

	b = newBench(t, fake.Dataset(1))
	b.to.Wrap = func(s *fake.Source) { s.ReadErr = boom }
	if err := b.fails("reading the target back: "); !errors.As(err, &proof) || !strings.Contains(err.Error(), boom.Error()) {
		t.Errorf("%v", err)
	}

	b = newBench(t, fake.Dataset(1))
	b.o.Version = 0x1FF
	b.fails("low byte is 0xFF")
}

func TestCancel(t *testing.T) {
	b := newBench(t, fake.Dataset(4))
	b.o.Discard = true
	ctx, cancel := context.WithCancel(context.Background())
	b.from.Wrap = func(s *fake.Source) { s.Fail = func(*record.Header, *format.Env) error { cancel(); return nil } }
	if _, err := Run(ctx, &b.o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	b.leaves("src")
}

func TestTargetsThatCannotBe(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	for path, text := range map[string]string{
		"src":         "already exists",
		"src/CURRENT": "already exists",
		"no/dst":      "does not exist",
		"src/dst":     "inside the source",
	} {
		b.o.Target.Path = filepath.Join(b.dir, path)
		b.fails(text)
		if _, err := DryRun(context.Background(), &b.o); err == nil {
			t.Errorf("%s: no error of a dry run", path)
		}
	}
	b.o.Target.Path = filepath.Join(b.dir, "src/CURRENT/dst")
	if _, err := Run(context.Background(), &b.o); err == nil {
		t.Error("a target below a file")
	}
}

func TestTargetMadeMeanwhile(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.crash = func(step string) {
		if step == "publish" {
			b.write("dst", []byte("mine"))
		}
	}
	_, err := Run(context.Background(), &b.o)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	b.leaves("dst", "src")
	if got := b.tree(); got != "\nmine\n" {
		t.Errorf("it was touched: %q", got)
	}
}

func TestKeyOrder(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.from.Wrap = func(s *fake.Source) { s.Disorder = record.AllTypes }
	rep := b.run()
	if rep.Records() != 60 || len(rep.Findings) != 1 || rep.Findings[0].Kind != "key-order" {
		t.Errorf("%d records, findings %+v", rep.Records(), rep.Findings)
	}
	b = newBench(t, fake.Dataset(1))
	b.from.Wrap = func(s *fake.Source) { s.Disorder, s.Resort = record.AllTypes, false }
	b.fails("000007.sst: offset 4096")
}

func TestUnsortedSource(t *testing.T) {
	records := fake.Dataset(1)
	records[2].ExpireMS = 1
	b := newBench(t, records)
	b.from.Wrap = func(s *fake.Source) { s.Reversed = true }
	rep := b.run()
	want := newBench(t, records)
	want.run()
	if b.tree() != want.tree() {
		t.Error("an unsorted source gives another target")
	}
	if rep.Ledger[0].Classes["expired"] != records[2].Rows() {
		t.Errorf("ledger %+v", rep.Ledger)
	}
}

func TestOneDatabaseMayBeCalledOtherwise(t *testing.T) {
	records := fake.Dataset(3)
	b := newBench(t, records)
	b.o.Selection = filtered(filter.Filter{DBs: []string{"2"}})
	b.to.Spoil = func(r *fake.Record) { r.DB = "0" } // the name in a flat layout
	if rep := b.run(); rep.Records() != 60 || rep.Parts[0].DB != "2" {
		t.Errorf("%+v", rep.Parts)
	}
}

func TestNoProve(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.NoProve = true
	b.to.Spoil = func(r *fake.Record) { r.Elems = r.Elems[:1] }
	rep := b.run()
	if rep.Proof.Done || rep.Proof.Why != "--no-prove was given" || rep.Records() != 60 {
		t.Errorf("%+v", rep.Proof)
	}
	for _, p := range rep.Parts {
		if p.Elements == 0 || p.Millis != (record.Sum128{}) || p.Seconds != (record.Sum128{}) {
			t.Errorf("%+v: want counts alone", p)
		}
	}
}

func TestDryRun(t *testing.T) {
	b := newBench(t, lossy())
	rep, err := DryRun(context.Background(), &b.o)
	var loss *result.LossError
	if !errors.As(err, &loss) || rep == nil {
		t.Fatalf("%v, %v", rep, err)
	}
	if !rep.DryRun || rep.Records() != 62 || len(rep.Losses) != 3 || rep.Proof.Done {
		t.Errorf("%+v", rep)
	}
	b.leaves("src")

	b = newBench(t, fake.Dataset(1))
	b.from.Wrap = func(s *fake.Source) { s.Disorder = record.AllTypes }
	if rep, err = DryRun(context.Background(), &b.o); err != nil || rep.Records() != 60 {
		t.Errorf("%+v, %v", rep, err)
	}
}

func TestExtraFiles(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.write("src/info", []byte("3s\n10.0.0.7\n9221\n42\n1234\n"))
	b.from.Wrap = func(s *fake.Source) { s.Files = []string{"info"} }
	rep := b.run()
	if rep.Follow != nil {
		t.Errorf("servers of a format that follows none: %+v", rep.Follow)
	}
	if data, err := os.ReadFile(filepath.Join(b.dir, "dst/info")); err != nil || len(data) == 0 {
		t.Errorf("%q, %v", data, err)
	}

	b = newBench(t, fake.Dataset(1))
	b.write("src/info", []byte("3s\n"))
	b.from.Wrap = func(s *fake.Source) { s.Files = []string{"info"} }
	b.o.crash = func(step string) {
		if step == "finished" {
			b.write("dst.kvferry/data/info", []byte("2s\n"))
		}
	}
	b.fails("info: it differs from the file that was copied")
}

func TestSlaveOf(t *testing.T) {
	for info, want := range map[string]string{
		"1s\nh\n1\n2\n3":             "slaveof h 1 2 3",
		"1s\r\nh\r\n1\r\n2\r\n3\r\n": "slaveof h 1 2 3",
		"1s\nh\n1\n2\n3\n7\n8\n":     "slaveof h 1 2 3",
		"1s\nh\n1\n2":                "",
		"1s\nh\nport\n2\n3":          "",
		"1s\n\n1\n2\n3":              "",
		"":                           "",
	} {
		if got, ok := slaveOf([]byte(info)); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", info, got, ok)
		}
	}
}

func TestProgress(t *testing.T) {
	b := newBench(t, fake.Dataset(2))
	b.from.Wrap = func(s *fake.Source) {
		s.Weight = 1000
		s.Findings = []record.Finding{{Kind: "k", Severity: record.Error}, {Kind: "k", Severity: record.Warning}}
	}
	b.o.AllowLoss = []string{record.LossDamaged}
	var phases []string
	var last Progress
	b.o.Progress = func(p Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
		if p.Done > p.Total {
			t.Errorf("%+v", p)
		}
		last = p
	}
	rep := b.run()
	if got := strings.Join(phases, " "); got != "plan convert finish prove publish" {
		t.Errorf("phases %s, last %+v", got, last)
	}
	for _, f := range rep.Findings {
		if f.Severity == record.Error.String() && (f.Count == 0 || last.Errors != f.Count) {
			t.Errorf("%d errors in the progress, %d in the report", last.Errors, f.Count)
		}
	}
}

// TestResumedRate checks that what an earlier process did counts as done, and not for the rate.
func TestResumedRate(t *testing.T) {
	b := newBench(t, fake.Dataset(2))
	b.from.Wrap = func(s *fake.Source) { s.Weight = 1000 }
	b.killed("finished")
	b.crashable("never")
	b.o.Resume = true
	var first *Progress
	b.o.Progress = func(p Progress) {
		if first == nil && p.Phase == "convert" {
			first = &p
		}
	}
	b.run()
	if first == nil || first.Done == 0 || first.Done > first.Total || first.Rate != 0 {
		t.Errorf("the step begins with %+v", first)
	}
}
