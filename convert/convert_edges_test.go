package convert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// manyBatches is the number of elements in several batches between two checks for cancellation.
const manyBatches = 3 * 256 * 64

// many returns n strings, the first of which is lost, and a hash of elems fields.
func many(n, elems int) []fake.Record {
	var out []fake.Record
	for i := range n {
		out = append(out, fake.Record{DB: "0", Type: record.String, Key: []byte(fmt.Sprintf("lost%05d", i)),
			Elems: []record.Element{{Value: []byte("v")}}})
	}
	h := fake.Record{DB: "0", Type: record.Hash, Key: []byte("h")}
	for i := range elems {
		h.Elems = append(h.Elems, record.Element{Name: []byte(fmt.Sprint(i)), Value: []byte("v")})
	}
	return append(out, h)
}

func TestRefusalStopsWritingAndGoesOnCounting(t *testing.T) {
	b := newBench(t, many(500, 1))
	b.fails("500 × key-too-long")
}

func TestManyBatches(t *testing.T) {
	b := newBench(t, many(0, manyBatches))
	if rep := b.run(); rep.Elements() != manyBatches {
		t.Errorf("%d elements", rep.Elements())
	}
}

func TestCancelInsideARecord(t *testing.T) {
	for _, c := range []struct {
		phase   string
		discard bool
		left    []string
	}{
		{"convert", false, []string{"src"}}, // no task is done
		{"prove", true, []string{"src"}},
		{"prove", false, []string{"dst.kvferry", "src"}},
	} {
		b := newBench(t, many(0, manyBatches))
		b.o.Discard = c.discard
		ctx, cancel := context.WithCancel(context.Background())
		b.o.Progress = func(p Progress) {
			if p.Phase == c.phase {
				cancel()
			}
		}
		if rep, err := Run(ctx, &b.o); !errors.Is(err, context.Canceled) || rep != nil {
			t.Errorf("%s: %v, report %+v", c.phase, err, rep)
		}
		b.leaves(c.left...)
	}
}

func TestCompare(t *testing.T) {
	part := record.Part{DB: "0", Type: record.Hash}
	var a, b, c record.Fingerprint
	a.Add(part, record.Digest{Records: 1, Elements: 2, Millis: record.Sum128{Lo: 1}})
	b.Add(part, record.Digest{Records: 1, Elements: 2, Millis: record.Sum128{Lo: 2}})
	findings := []result.FindingKind{{Kind: "count", Severity: "error", Count: 1, Samples: []result.Sample{{Detail: "bad"}}},
		{Kind: "x", Severity: "note"}}
	for _, e := range []struct {
		want, got *record.Fingerprint
		seconds   bool
		findings  []result.FindingKind
		err       error
		text      string
	}{
		{&a, &a, false, findings[1:], nil, ""},
		{&a, &b, true, nil, nil, ""},
		{&a, &b, false, nil, nil, "fingerprint 00000000000000000000000000000001 was written, 00000000000000000000000000000002 read back"},
		{&a, &c, true, nil, nil, "1 record and 2 elements were written, 0 and 0 read back"},
		{&c, &a, true, nil, nil, "0 records and 0 elements were written, 1 and 2 read back"},
		{&a, &a, false, findings, nil, "1 × count, such as (bad)"},
		{&a, &b, false, nil, errors.New("boom"), "reading the target back: boom"},
	} {
		err := compare(e.want, e.got, e.seconds, e.findings, e.err)
		switch {
		case e.text == "" && err != nil:
			t.Errorf("%v", err)
		case e.text != "" && (err == nil || !strings.Contains(err.Error(), e.text)):
			t.Errorf("%v, want %q", err, e.text)
		}
	}
}

func TestTargetLayout(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	other := fake.NewFormat()
	b.o.Layout = format.LayoutAuto
	for _, c := range []struct {
		has   format.Layout
		dbs   int
		same  bool
		given format.Layout
		want  format.Layout
	}{
		{format.LayoutFlat, 1, false, format.LayoutAuto, format.LayoutFlat},
		{format.LayoutFlat, 1, false, format.LayoutDB, format.LayoutDB},
		{format.LayoutDB, 3, false, format.LayoutAuto, format.LayoutDB},
		{format.LayoutDB, 3, false, format.LayoutFlat, format.LayoutFlat},
	} {
		o := b.o
		o.Layout = c.given
		o.Target.Format = other
		if got := targetLayout(&o, &fake.Source{Laid: c.has}, make([]string, c.dbs)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	o := b.o
	o.Target.Format = renamed{other}
	if got := targetLayout(&o, &fake.Source{Laid: format.LayoutFlat}, make([]string, 2)); got != format.LayoutDB {
		t.Errorf("several databases of another format: %v", got)
	}
}

// renamed is a format of another name.
type renamed struct{ *fake.Format }

func (renamed) Name() string { return "other" }

func TestOptionTexts(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.Selection = filtered(filter.Filter{Keys: map[string]struct{}{"b": {}, "a": {}}, Match: []string{"x*"}})
	b.o.Prefer = []record.Type{record.Hash}
	b.o.Layout = format.LayoutFlat
	m := optionTexts(&b.o)
	if !strings.HasPrefix(m["key-file"], "2 keys, digest ") || m["match"] != `["x*"]` || m["on-conflict"] != "keep=[hash]" ||
		m["layout"] != "flat" {
		t.Errorf("%v", m)
	}
	if m := optionTexts(&Options{Source: b.o.Source, Target: b.o.Target,
		Selection: new(filter.Selection)}); m["layout"] != "auto" || m["expired"] != "drop" {
		t.Errorf("%v", m)
	}
}

// optioned is a format with options of its own, as a source and as a target.
type optioned struct{ *fake.Format }

func (optioned) SourceOptions() string { return "key=id" }
func (optioned) TargetVersion() string { return "11" }

// TestOptionsOfFormats checks that a run is not continued with other options of its formats.
func TestOptionsOfFormats(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.Selection = filtered(filter.Filter{})
	was := optionTexts(&b.o)
	b.o.Source.Format = optioned{b.from}
	if m := optionTexts(&b.o); m["column"] != "key=id" || m["rdb-version"] != "" || len(m) != len(was)+1 {
		t.Errorf("source: %v", m)
	}
	b.o.Source.Format, b.o.Target.Format = b.from, optioned{b.to}
	if m := optionTexts(&b.o); m["column"] != "" || m["rdb-version"] != "11" || len(m) != len(was)+1 {
		t.Errorf("target: %v", m)
	}
}

// rehearsed returns the report of a dry run with one worker, and the number of readers that it opened.
func (b *bench) rehearsed(plan bool) (*Report, int64) {
	b.t.Helper()
	var opens atomic.Int64
	o, wrap := b.o, b.from.Wrap
	b.from.Wrap = func(s *fake.Source) {
		wrap(s)
		s.OnOpen = func() { opens.Add(1) }
	}
	defer func() { b.from.Wrap = wrap }()
	o.Plan, o.Workers = plan, 1
	rep, err := DryRun(context.Background(), &o)
	if err != nil {
		b.t.Fatal(err)
	}
	return rep, opens.Load()
}

func TestRename(t *testing.T) {
	records := append(fake.Dataset(1),
		fake.Record{DB: "0", Type: record.List, Key: []byte("key01")}, // no elements
		fake.Record{DB: "0", Type: record.String, Key: []byte("key01:set"), Elems: []record.Element{{Value: []byte("was here")}}})
	var want string
	for _, workers := range []int{1, 3} {
		b := newBench(t, records)
		b.to.Bounds.SameName = false
		b.to.Groups = []record.TypeSet{record.AllTypes}
		b.from.Wrap = func(s *fake.Source) { s.Weight = oneTask / 5 }
		b.o.Rename, b.o.Workers = true, workers
		b.o.Selection = filtered(filter.Filter{Match: []string{"key0?", "key01:set"}})
		planned, once := b.rehearsed(true)
		if _, twice := b.rehearsed(false); once >= twice {
			t.Errorf("a plan opened %d readers, a dry run %d", once, twice)
		}
		rep := b.run()
		p, c := planned.Losses[0], rep.Losses[0]
		if planned.Records() != rep.Records() || len(planned.Losses) != len(rep.Losses) || p.Count != c.Count || p.Drops {
			t.Errorf("planned %d records, losses %+v", planned.Records(), planned.Losses)
		} else if got, want := planned.Ledger[0].Classes["copied"], rep.Ledger[0].Classes["copied"]; got != want {
			t.Errorf("planned %d rows, want %d", got, want)
		}
		if rep.Records() != 21 || rep.Losses[0].Count != 10 || rep.Losses[0].Drops || !rep.Losses[0].Allowed {
			t.Errorf("%d records, losses %+v", rep.Records(), rep.Losses)
		}
		if rep.Ledger[0].Classes["copied"] != 60+1+1 || rep.Ledger[0].Classes["lost"] != 0 {
			t.Errorf("ledger %+v", rep.Ledger[0])
		}
		src, err := b.to.Open(context.Background(), b.o.Target.Path, &format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range src.(*fake.Source).All() {
			names = append(names, fmt.Sprintf("%s %s", r.Key, r.Type))
		}
		got := strings.Join(names, ", ")
		begin := "key00 string, key00:hash hash, key01 list, key01:set string, key01:set_ set, key02 string, key02:zset zset, "
		if !strings.HasPrefix(got, begin) {
			t.Errorf("%s", got)
		}
		if want == "" {
			want = got
		} else if got != want {
			t.Errorf("with %d workers %s, want %s", workers, got, want)
		}
	}
}

// TestNameOfNothing checks that a record without elements that the target can hold leaves its name to the next one,
// and that an empty stream keeps or loses its name like other records.
func TestNameOfNothing(t *testing.T) {
	value := []record.Element{{Value: []byte("v")}}
	records := []fake.Record{
		{DB: "0", Type: record.String, Key: []byte("a"), Elems: value},
		{DB: "0", Type: record.ZSet, Key: []byte("a"), Elems: []record.Element{{Name: []byte("m"), Score: 2e20}}},
		{DB: "0", Type: record.String, Key: []byte("b"), Elems: value},
		{DB: "0", Type: record.Stream, Key: []byte("b"), Last: make([]byte, 16)},
	}
	for _, c := range []struct {
		rename bool
		prefer record.Type
		Names  string
		losses map[string]int64
	}{
		{false, record.ZSet, "a string, b string", map[string]int64{"score-range": 1, "same-name": 1}},
		{false, record.Stream, "a string, b stream", map[string]int64{"same-name": 2}},
		{true, record.ZSet, "a string, b string, b:stream stream", map[string]int64{"score-range": 1, "same-name": 1}},
	} {
		b := newBench(t, records)
		b.to.Bounds.SameName = false
		b.to.Groups = []record.TypeSet{record.AllTypes}
		b.o.Prefer, b.o.Rename, b.o.AllowLoss = []record.Type{c.prefer}, c.rename, []string{"score-range", "same-name"}
		rep := b.run()
		losses := map[string]int64{}
		for _, l := range rep.Losses {
			losses[l.Kind] = l.Count
		}
		src, err := b.to.Open(context.Background(), b.o.Target.Path, &format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range src.(*fake.Source).All() {
			names = append(names, fmt.Sprintf("%s %s", r.Key, r.Type))
		}
		if got := strings.Join(names, ", "); got != c.Names || !maps.Equal(losses, c.losses) {
			t.Errorf("rename %v, prefer %s: %s with losses %v, want %s with %v", c.rename, c.prefer, got, losses, c.Names,
				c.losses)
		}
	}
}

// TestRenameGrowth checks that renaming does not open a reader per name.
func TestRenameGrowth(t *testing.T) {
	value := []record.Element{{Value: []byte("v")}}
	field := []record.Element{{Name: []byte("f"), Value: []byte("v")}}
	var opened [2]int64
	for i, n := range []int{200, 1600} {
		var records []fake.Record
		var want []string
		for j := range n {
			key := fmt.Sprintf("k%06d", j)
			records = append(records, fake.Record{DB: "0", Type: record.String, Key: []byte(key), Elems: value},
				fake.Record{DB: "0", Type: record.Hash, Key: []byte(key), Elems: field})
			to := key + ":hash"
			if j%10 == 0 { // some records have that name
				records = append(records, fake.Record{DB: "0", Type: record.String, Key: []byte(to), Elems: value})
				want = append(want, fmt.Sprintf("0 %s string 0 1", to))
				to += "_"
			}
			want = append(want, fmt.Sprintf("0 %s string 0 1", key), fmt.Sprintf("0 %s hash 0 1", to))
		}
		b := newBench(t, records)
		b.to.Bounds.SameName = false
		b.to.Groups = []record.TypeSet{record.AllTypes}
		b.o.Prefer, b.o.Rename, b.o.AllowLoss, b.o.Workers = []record.Type{record.String}, true, []string{"same-name"}, 1
		var opens atomic.Int64
		b.from.Wrap = func(s *fake.Source) { s.OnOpen = func() { opens.Add(1) } }
		b.run()
		got := b.names("dst")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%d names, want %d", len(got), len(want))
		}
		opened[i] = opens.Load()
	}
	if opened[1] > opened[0]+20 {
		t.Errorf("%d readers for 200 names, %d for 1,600", opened[0], opened[1])
	}
}

// TestStringsAtOnce checks that each string of a batch has its own losses, and that the others are written in order.
func TestStringsAtOnce(t *testing.T) {
	var records []fake.Record
	for _, key := range []string{"a", "b", "c", "d", "lost1", "lost2", "lost3", "note1", "note2", "x", "y"} {
		records = append(records, fake.Record{DB: "0", Type: record.String, Key: []byte(key),
			Elems: []record.Element{{Value: []byte("of " + key)}}})
	}
	for _, group := range []record.TypeSet{record.Of(record.String), record.AllTypes} {
		b := newBench(t, records)
		b.to.Groups = []record.TypeSet{group}
		b.o.AllowLoss = []string{"key-too-long"}
		rep := b.run()
		if rep.Records() != 8 || rep.Ledger[0].Classes["lost"] != 3 || rep.Ledger[0].Classes["copied"] != 8 {
			t.Errorf("%s: %d records, ledger %+v", group, rep.Records(), rep.Ledger)
		}
		if len(rep.Losses) != 2 || rep.Losses[0].Count+rep.Losses[1].Count != 5 {
			t.Errorf("%s: losses %s", group, fmt.Sprint(rep.Losses))
		}
		for _, l := range rep.Losses {
			for i, s := range l.Samples {
				if want := fmt.Sprintf("%s%d", map[bool]string{true: "note", false: "lost"}[l.Note], i+1); string(s.Key) != want {
					t.Errorf("%s: loss %d of %q, want %s", group, i, s.Key, want)
				}
			}
		}
	}
}

// TestDatabaseNumbers checks that a database whose number the target's servers do not support is written and noted,
// without permission.
func TestDatabaseNumbers(t *testing.T) {
	for most, want := range map[int]string{0: "", 2: "2", 3: ""} {
		b := newBench(t, fake.Dataset(3))
		b.to.Bounds.Numbered, b.to.Bounds.MaxDBs = true, most
		var got []string
		for _, l := range b.run().Losses {
			if l.Kind != record.LossDatabase || !l.Note || l.Count != int64(len(l.Samples)) {
				t.Errorf("%+v", l)
			}
			for _, s := range l.Samples {
				got = append(got, string(s.DB))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d databases: told of %q, want %q", most, got, want)
		}
	}
}

// TestWithEmpty checks that empty databases are added below others if servers have a directory for each number.
func TestWithEmpty(t *testing.T) {
	numbered := fake.NewFormat()
	numbered.Bounds.Numbered = true
	named, file := fake.NewFormat(), fake.NewFormat()
	file.Bounds.Numbered, file.Bounds.Place = true, format.InFile
	chosen := &filter.Selection{Filter: filter.Filter{DBs: []string{"3"}}}
	for _, c := range []struct {
		name   string
		target *fake.Format
		chosen *filter.Selection
		from   format.Layout
		layout format.Layout
		dbs    string
		want   string
	}{
		{"a gap", numbered, new(filter.Selection), format.LayoutFlat, format.LayoutDB, "0 3", "0 3 1 2"},
		{"none of the first", numbered, new(filter.Selection), format.LayoutFlat, format.LayoutAuto, "2", "2 0 1"},
		{"none missing", numbered, new(filter.Selection), format.LayoutFlat, format.LayoutDB, "1 0", "1 0"},
		{"the only one", numbered, new(filter.Selection), format.LayoutFlat, format.LayoutAuto, "0", "0"},
		{"flat", numbered, new(filter.Selection), format.LayoutFlat, format.LayoutFlat, "3", "3"},
		{"chosen", numbered, chosen, format.LayoutFlat, format.LayoutDB, "3", "3"},
		{"a gap in the source", numbered, new(filter.Selection), format.LayoutDB, format.LayoutDB, "0 3", "0 3"},
		{"names", named, new(filter.Selection), format.LayoutFlat, format.LayoutDB, "0 3", "0 3"},
		{"a file", file, new(filter.Selection), format.LayoutFlat, format.LayoutDB, "0 3", "0 3"},
		{"far off", numbered, new(filter.Selection), format.LayoutFlat, format.LayoutDB, "0 16", "0 16"},
		{"no number", numbered, new(filter.Selection), format.LayoutFlat, format.LayoutDB, "0 x", "0 x"},
	} {
		a := &attempt{src: &fake.Source{Of: fake.NewFormat(), Laid: c.from},
			run: &run{o: &Options{Target: Output{Format: c.target}, Selection: c.chosen}}}
		if got := strings.Join(a.withEmpty(strings.Fields(c.dbs), c.layout), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
