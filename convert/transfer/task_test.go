package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/pace"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

var testNow = time.Unix(1700000000, 0).UTC()

// room is a source, a target and the rules of the tasks between them.
type room struct {
	t       *testing.T
	src     *fake.Source
	to      *fake.Format
	target  format.Target
	plan    *plan.Plan
	rules   *Rules
	workers int
	allowed []string
}

// newRoom returns a room for records. Its target groups types like the format.
func newRoom(t *testing.T, records []fake.Record) *room {
	t.Helper()
	x := &room{t: t, src: &fake.Source{Of: fake.NewFormat(), Laid: format.LayoutDB, Weight: 1, Whole: true}, to: fake.NewFormat(),
		workers: 2}
	x.src.Add(records...)
	x.rules = &Rules{Now: testNow, Selection: new(filter.Selection), TempDir: t.TempDir(), Refused: new(atomic.Bool),
		Allows: func(kind string) bool { return slices.Contains(x.allowed, kind) }}
	return x
}

// begin makes the target and the plan.
func (x *room) begin() {
	x.t.Helper()
	dbs := x.src.Databases()
	target, err := x.to.Create(context.Background(), filepath.Join(x.t.TempDir(), "data"),
		&format.CreateOptions{DBs: dbs, Layout: format.LayoutDB, Reopen: new(format.OpenOptions)})
	if err == nil {
		x.plan, err = plan.New(x.src, dbs, dbs, target.Groups(), plan.Order{}, &x.rules.Selection.Filter,
			func(n int, do func(int) error) error { return pace.Each(n, 1, do) })
	}
	if err != nil {
		x.t.Fatal(err)
	}
	if x.target == nil {
		x.target = target
	}
	limits := x.to.Limits()
	x.rules.SameName, x.rules.FieldExpiry, x.rules.StreamGroups, x.rules.NoBlankStream =
		limits.SameName, limits.FieldExpiry, limits.StreamGroups, limits.NoBlankStream
}

// run runs all tasks and sums their results.
func (x *room) run(write bool) (*result.Totals, error) {
	results := make([]*result.Result, len(x.plan.Tasks))
	x.rules.Memory = pass.NewShares(1<<20, x.plan.Tasks, x.workers)
	err := pass.Run(context.Background(), x.plan.Tasks, pass.NewCores(x.workers), pass.Memory{Bytes: 1 << 30, Held: 16},
		func(ctx context.Context, t *pass.Task) (err error) {
			results[t.N], err = Run(ctx, t, x.rules, x.src, x.target, write)
			return err
		})
	if err != nil {
		return nil, err
	}
	return result.Sum(results)
}

// proved runs all tasks, finishes the target, compares it with the written records, and returns its names.
func (x *room) proved() (*result.Totals, string) {
	x.t.Helper()
	tot, err := x.run(true)
	if err != nil {
		x.t.Fatal(err)
	}
	if err := tot.Ledger.Check(); err != nil {
		x.t.Error(err)
	}
	back, err := x.target.Finish(context.Background())
	if err != nil {
		x.t.Fatal(err)
	}
	var got record.Fingerprint
	for _, t := range plan.ProofTasks(back, x.plan) {
		f, ledger, err := Prove(context.Background(), &t, x.rules, 1<<20, back, func(f record.Finding) { x.t.Errorf("%+v", f) })
		if err == nil {
			err = ledger.Check()
		}
		if err != nil {
			x.t.Fatal(err)
		}
		got.Merge(f)
	}
	if diff := tot.Fingerprint.Diff(&got, false); len(diff) > 0 {
		x.t.Errorf("read back: %v differ: %v, want %v", diff, got.Parts(), tot.Fingerprint.Parts())
	}
	var names []string
	for _, r := range back.(*fake.Source).All() {
		names = append(names, fmt.Sprintf("%s %s", r.Key, r.Type))
	}
	return tot, strings.Join(names, ", ")
}

// records returns the number of written records and elements.
func records(t *result.Totals) (records, elements int64) {
	for _, d := range t.Fingerprint.Parts() {
		records += d.Records
		elements += d.Elements
	}
	return records, elements
}

// text formats losses.
func text(t *result.Totals) string {
	var out strings.Builder
	for _, l := range t.Losses.List() {
		fmt.Fprintf(&out, "%s %d %t %v\n", l.Kind, l.Count, l.Drops, l.Samples)
	}
	return out.String()
}

// TestRun checks that tasks write records that read back equal, and that counts are the same without a target.
func TestRun(t *testing.T) {
	for _, all := range []bool{false, true} {
		x := newRoom(t, fake.Dataset(2))
		if all {
			x.to.Groups = []record.TypeSet{record.AllTypes}
		}
		x.src.Weight = 4 << 20 // a few records per task
		x.begin()
		counted, err := x.run(false)
		if err != nil || len(x.plan.Tasks) < 4 {
			t.Fatalf("%d tasks, %v", len(x.plan.Tasks), err)
		}
		tot, _ := x.proved()
		if n, e := records(tot); n != 120 || e != 264 || len(tot.Fingerprint.Diff(&counted.Fingerprint, false)) > 0 {
			t.Errorf("%d records of %d elements", n, e)
		}
	}
}

// TestUnsorted checks that unsorted records are sorted, also while a selection buffers records.
func TestUnsorted(t *testing.T) {
	x := newRoom(t, fake.Dataset(1))
	x.src.Reversed = true
	x.rules.Selection = &filter.Selection{MinElements: 2}
	x.begin()
	tot, _ := x.proved()
	if n, _ := records(tot); n != 36 {
		t.Errorf("%d records", n)
	}
}

// TestRefused checks that after a refused loss no more records are written, but all are counted.
func TestRefused(t *testing.T) {
	var list []fake.Record
	for i := range 200 {
		list = append(list, fake.Record{DB: "0", Type: record.Set, Key: fmt.Appendf(nil, "lost%03d", i),
			Elems: []record.Element{{Name: []byte("m")}}})
	}
	list = append(list, fake.Record{DB: "0", Type: record.Set, Key: []byte("m"), Elems: []record.Element{{Name: []byte("m")}}},
		fake.Record{DB: "0", Type: record.Hash, Key: []byte("h"), Elems: []record.Element{{Name: []byte("f")}}})
	for _, allowed := range []bool{false, true} {
		x := newRoom(t, list)
		x.workers = 1
		if allowed {
			x.allowed = []string{"key-too-long"}
		}
		x.begin()
		tot, err := x.run(true)
		if err != nil {
			t.Fatal(err)
		}
		wrote := 0
		for n := range x.plan.Tasks {
			tables, _ := x.target.Tables(n)
			wrote += len(tables)
		}
		if n, _ := records(tot); n != 2 || tot.Losses.List()[0].Count != 200 || x.rules.Refused.Load() == allowed ||
			(wrote == 2) != allowed {
			t.Errorf("allowed %t: %d records, losses %s, %d tables", allowed, n, text(tot), wrote)
		}
	}
}

// TestFindingsRefuse checks that a finding that means a loss can refuse the run.
func TestFindingsRefuse(t *testing.T) {
	x := newRoom(t, fake.Dataset(1))
	x.src.Findings = []record.Finding{{Kind: record.FindDamagedBlock, Severity: record.Error, Type: record.Hash}}
	x.begin()
	if tot, err := x.run(true); err != nil || len(tot.Findings.List()) != 1 || !x.rules.Refused.Load() {
		t.Errorf("%v, %v", tot, err)
	}
}

// unheld returns records with parts that targets may not hold.
func unheld() []fake.Record {
	e := func(kind record.Kind, name string) record.Element {
		return record.Element{Kind: kind, Name: []byte(name), Value: []byte("v")}
	}
	fields := []record.Element{e(0, "a"), e(0, "b")}
	fields[0].ExpireMS = testNow.UnixMilli() + 1000
	zero, id := make([]byte, 16), bytes.Repeat([]byte{1}, 16)
	groups := []record.Element{e(record.Group, "g1"), e(record.Consumer, "c"), e(record.Group, "g2")}
	return []fake.Record{
		{DB: "0", Type: record.Hash, Key: []byte("fields"), Elems: fields},
		{DB: "0", Type: record.Stream, Key: []byte("blank"), Last: zero},
		{DB: "0", Type: record.Stream, Key: []byte("emptied"), Last: id},
		{DB: "0", Type: record.Stream, Key: []byte("groups"), Last: id, Elems: append([]record.Element{e(record.Entry, "1")}, groups...)},
		{DB: "0", Type: record.Stream, Key: []byte("only groups"), Last: zero, Elems: groups},
		{DB: "0", Type: record.Other, Key: []byte("module"), Elems: []record.Element{e(0, "head"), e(0, "tail")}},
		{DB: "0", Type: record.String, Key: []byte("lost"), Elems: []record.Element{e(0, "")}},
		{DB: "0", Type: record.String, Key: []byte("note"), Elems: []record.Element{e(0, "")}},
		{DB: "0", Type: record.String, Key: []byte("s"), Elems: []record.Element{e(0, "")}},
		{DB: "0", Type: record.ZSet, Key: []byte("z"), Elems: []record.Element{{Name: []byte("a"), Score: 1e14}, {Name: []byte("b"), Score: 1}}},
	}
}

// TestUnheld checks that data beyond a target's limits is dropped, reported once with its record, and counted as
// lost.
func TestUnheld(t *testing.T) {
	for name, c := range map[string]struct {
		limits         format.Limits
		groups         []record.TypeSet
		records, elems int64
		lost           int64
		want           string
	}{
		"everything": {format.Limits{FieldExpiry: true, StreamGroups: true}, []record.TypeSet{record.AllTypes}, 8, 6, 3 + 1 + 1,
			`hyperloglog 1 false [string "note" in database 0]
key-too-long 1 true [string "lost" in database 0 (it is)]
module 1 true [other "module" in database 0 (piece head)]
score-range 1 true [zset "z" in database 0 (member "a")]
`},
		"little": {format.Limits{NoBlankStream: true}, []record.TypeSet{record.Of(record.Stream), record.Of(record.Hash), record.Of(record.ZSet)}, 4, 4, 1 + 4 + 3 + 3 + 3 + 1,
			`blank-stream 2 true [stream "blank" in database 0 (it never had an entry) stream "only groups" in database 0 (it never had an entry)]
field-expiry 1 false [hash "fields" in database 0 (field "a")]
hyperloglog 1 false [string "note" in database 0]
key-too-long 1 true [string "lost" in database 0 (it is)]
module 1 true [other "module" in database 0 (the target does not support it)]
score-range 1 true [zset "z" in database 0 (member "a")]
stream-groups 4 true [stream "groups" in database 0 (group "g1") stream "groups" in database 0 (group "g2") ` +
				`stream "only groups" in database 0 (group "g1") stream "only groups" in database 0 (group "g2")]
string 2 true [string "note" in database 0 (the target has no such type) string "s" in database 0 (the target has no such type)]
`},
	} {
		x := newRoom(t, unheld())
		c.limits.SameName = true
		x.to.Bounds, x.to.Groups = c.limits, c.groups
		x.allowed = []string{"key-too-long", "score-range", "string", record.LossFieldExpiry, record.LossStreamGroups,
			record.LossBlankStream, record.LossModule}
		x.src.Ranges = []format.Range{{Keyspace: "rows"}}
		x.begin()
		tot, _ := x.proved()
		n, e := records(tot)
		lost := tot.Ledger.Snapshot()["0/rows"].Rows[record.Lost]
		if got := text(tot); n != c.records || e != c.elems || lost != c.lost || got != c.want {
			t.Errorf("%s: %d records, %d elements, %d rows are lost\n%s", name, n, e, lost, got)
		}
	}
}

// rivals returns records that share names.
func rivals() []fake.Record {
	value, member := []record.Element{{Value: []byte("v")}}, []record.Element{{Name: []byte("m")}}
	return []fake.Record{
		{DB: "0", Type: record.String, Key: []byte("a"), Elems: value}, {DB: "0", Type: record.Set, Key: []byte("a"), Elems: member},
		{DB: "0", Type: record.ZSet, Key: []byte("a"), Elems: []record.Element{{Name: []byte("m"), Score: 1e14}}}, // no element fits the target
		{DB: "0", Type: record.String, Key: []byte("a:set"), Elems: value},
		{DB: "0", Type: record.String, Key: []byte("b"), Elems: value}, {DB: "0", Type: record.Stream, Key: []byte("b"), Last: bytes.Repeat([]byte{1}, 16)},
		{DB: "0", Type: record.String, Key: []byte("c"), Elems: value}, {DB: "0", Type: record.List, Key: []byte("c")},
	}
}

// TestRivals checks that one of several types keeps the name, and that the others are lost or get an unused name.
func TestRivals(t *testing.T) {
	for _, c := range []struct {
		rename bool
		prefer []record.Type
		names  string
		losses string
	}{
		{false, nil, "a string, a:set string, b string, c string", "same-name 3 true"},
		{false, []record.Type{record.ZSet, record.Set}, "a set, a:set string, b string, c string", "same-name 2 true"},
		{true, []record.Type{record.Stream}, "a string, a:set string, a:set_ set, b stream, b:string string, c string", "same-name 3 false"},
	} {
		for _, n := range []int{1, 3} {
			x := newRoom(t, rivals())
			x.to.Bounds, x.to.Groups = format.Limits{StreamGroups: true}, []record.TypeSet{record.AllTypes}
			x.workers, x.rules.Prefer, x.allowed = n, c.prefer, []string{"same-name", "score-range"}
			x.src.Weight = 8 << 20
			x.begin()
			if c.rename {
				x.rules.Memory = pass.NewShares(1<<20, x.plan.Tasks, n)
				var err error
				x.rules.Renames, err = FindRenames(context.Background(), x.plan.Tasks, x.rules, x.src, x.target, pass.NewCores(n),
					pass.Memory{Bytes: 1 << 20, Held: 16})
				if err != nil {
					t.Fatal(err)
				}
			}
			tot, names := x.proved()
			if names != c.names || !strings.Contains(text(tot), c.losses) ||
				tot.Ledger.Snapshot()["0/rows"].Rows[record.Copied] == 0 {
				t.Errorf("%s with %d workers: %s, losses\n%s", c.prefer, n, names, text(tot))
			}
		}
	}
}

// TestRenamedHeadersLoseOnce checks that a loss in the header of a renamed record counts once, in a dry run and in a
// conversion. What the new name alone loses counts, too.
func TestRenamedHeadersLoseOnce(t *testing.T) {
	value := []record.Element{{Name: []byte("m"), Value: []byte("v")}}
	for _, dry := range []bool{true, false} {
		x := newRoom(t, []fake.Record{{DB: "0", Type: record.String, Key: []byte("note"), Elems: value},
			{DB: "0", Type: record.Set, Key: []byte("note"), Elems: value}})
		x.to.Bounds, x.to.Groups, x.allowed = format.Limits{StreamGroups: true}, []record.TypeSet{record.AllTypes}, []string{"same-name"}
		x.begin()
		x.rules.NewNames = dry
		if !dry {
			var err error
			x.rules.Memory = pass.NewShares(1<<20, x.plan.Tasks, 1)
			x.rules.Renames, err = FindRenames(context.Background(), x.plan.Tasks, x.rules, x.src, x.target, pass.NewCores(1),
				pass.Memory{Bytes: 1 << 20, Held: 16})
			if err != nil {
				t.Fatal(err)
			}
		}
		tot, err := x.run(!dry)
		if got := text(tot); err != nil || !strings.Contains(got, "hyperloglog 2 ") || !strings.Contains(got, "same-name 1 ") {
			t.Errorf("dry %v: %v, losses\n%s", dry, err, got)
		}
	}
}

// TestNoRenames checks that the list of renames is empty, but not nil, if no names compete.
func TestNoRenames(t *testing.T) {
	x := newRoom(t, []fake.Record{{DB: "0", Type: record.Set, Key: []byte("a"), Elems: []record.Element{{Name: []byte("m")}}}})
	x.to.Groups = []record.TypeSet{record.Of(record.Set)}
	x.begin()
	none, err := FindRenames(context.Background(), x.plan.Tasks, x.rules, x.src, x.target, pass.NewCores(1),
		pass.Memory{Bytes: 1 << 20, Held: 16})
	if err != nil || none == nil || len(none) > 0 {
		t.Errorf("%v, %v", none, err)
	}
}

// TestManyRenames checks that more renames than fit into memory are refused.
func TestManyRenames(t *testing.T) {
	x := newRoom(t, rivals())
	x.to.Bounds, x.to.Groups = format.Limits{}, []record.TypeSet{record.AllTypes}
	x.begin()
	_, err := FindRenames(context.Background(), x.plan.Tasks, x.rules, x.src, x.target, pass.NewCores(1),
		pass.Memory{Bytes: 1 << 10, Held: 16})
	if !errors.Is(err, errManyRenames) {
		t.Error(err)
	}
}

// TestRenamedIsGone checks that a renamed record that has disappeared is an error, and that another one at its place
// is not used.
func TestRenamedIsGone(t *testing.T) {
	x := newRoom(t, rivals())
	r := &renamed{ctx: context.Background(), src: x.src, env: format.Env{Ledger: new(record.Ledger)},
		list: []Rename{{db: "0", typ: record.Set, key: []byte("b"), to: []byte("b:set")}}}
	if _, err := r.Next(); err == nil || err.Error() != `set "b": gone since it was looked at` {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// refusing is a target that cannot be written.
type refusing struct{ format.Target }

func (refusing) Shard(int, string, record.TypeSet, int64) (record.Writer, error) {
	return nil, errors.New("no shard")
}

// TestRunFails checks that read and write errors end a task, and that its shard is aborted.
func TestRunFails(t *testing.T) {
	for want, spoil := range map[string]func(*room){
		"bad row":                 func(x *room) { x.src.ReadErr = errors.New("bad row") },
		"no space left on device": func(x *room) { x.to.FailAfter = 3 },
		"no shard":                func(x *room) { x.target = refusing{x.target} },
		"000007.sst":              func(x *room) { x.src.Disorder = record.Of(record.ZSet) },
	} {
		x := newRoom(t, fake.Dataset(1))
		x.to.Groups = []record.TypeSet{record.AllTypes}
		x.begin()
		spoil(x)
		_, err := x.run(true)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if tables, _ := x.target.Tables(0); len(tables) > 0 {
			t.Errorf("%s: it left %v", want, tables)
		}
		if want == "bad row" {
			_, _, err := Prove(context.Background(), &x.plan.Tasks[0], x.rules, 1<<20, x.src, nil)
			if err == nil || err.Error() != want {
				t.Errorf("proof: %v", err)
			}
		}
	}
}

// looking is a target on a server that looks up keys.
type looking struct {
	*fake.Target
	format.Loaded
	keys []string
}

func (l *looking) Look(string, bool) (record.Writer, error) { return &looker{l: l}, nil }

type looker struct {
	record.Writer
	l *looking
}

func (w *looker) Write(b *record.Batch) error {
	for i := range b.Records {
		w.l.keys = append(w.l.keys, string(b.Records[i].Key))
	}
	return nil
}
func (w *looker) Close() error { return nil }

// TestLook checks that a task that only counts looks up its keys on a server.
func TestLook(t *testing.T) {
	x := newRoom(t, fake.Dataset(1))
	x.workers = 1
	x.begin()
	l := &looking{Target: x.target.(*fake.Target)}
	x.target = l
	if _, err := x.run(false); err != nil || len(l.keys) != 60 {
		t.Errorf("%d keys were looked for, %v", len(l.keys), err)
	}
}

// TestLapsed checks that records that expire soon are summed by step.
func TestLapsed(t *testing.T) {
	soon := testNow.Add(time.Minute).UnixMilli()
	x := newRoom(t, []fake.Record{
		{DB: "0", Type: record.String, Key: []byte("a"), ExpireMS: soon, Elems: []record.Element{{Value: []byte("v")}}},
		{DB: "0", Type: record.Hash, Key: []byte("h"), Elems: []record.Element{{Name: []byte("f"), ExpireMS: soon}, {Name: []byte("g")}}},
	})
	x.to.Bounds.FieldExpiry = true
	x.rules.Lapse = NewLapse(testNow)
	x.begin()
	tot, _ := x.proved()
	left, gone := tot.Without(x.rules.Lapse.Gone(testNow.Add(time.Hour)))
	if len(tot.Expiring) != 2 || gone["0"] != 1 || left.Parts()[record.Part{DB: "0", Type: record.Hash}].Elements != 1 {
		t.Errorf("%+v; %v, %v gone", tot.Expiring, left.Parts(), gone)
	}
}
