package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// expiring sets the expiry of most records of a dataset to times from an hour ago to five hours ahead.
func expiring(records []fake.Record) []fake.Record {
	for i := range records {
		if i%8 > 0 {
			records[i].ExpireMS = testNow.Add(time.Duration(i%8-2) * time.Hour).UnixMilli()
		}
	}
	return records
}

// names lists the records of a directory in the fake's format.
func (b *bench) names(dir string) []string {
	b.t.Helper()
	src, err := fake.NewFormat().Open(context.Background(), filepath.Join(b.dir, dir), &format.OpenOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, r := range src.(*fake.Source).All() {
		out = append(out, fmt.Sprintf("%s %s %s %d %d", r.DB, r.Key, r.Type, r.ExpireMS, len(r.Elems)))
	}
	slices.Sort(out)
	return out
}

// TestSelections checks that selected records are written, that all others are in the ledger, that source and target
// have the same fingerprint, and that a dry run predicts the same.
func TestSelections(t *testing.T) {
	records := expiring(fake.Dataset(2))
	ms := func(h int) int64 { return testNow.Add(time.Duration(h) * time.Hour).UnixMilli() }
	hour := func(n int) *filter.Moment { return &filter.Moment{Ahead: time.Duration(n) * time.Hour} }
	size := func(r *fake.Record) (n int64) {
		n = int64(len(r.Key))
		for _, e := range r.Elems {
			n += int64(len(e.Name) + len(e.Value))
			if r.Type == record.ZSet {
				n += 8
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		s    filter.Selection
		pass func(r *fake.Record) bool
	}{
		"ttl-from":     {filter.Selection{ExpireFrom: hour(3)}, func(r *fake.Record) bool { return r.ExpireMS >= ms(3) }},
		"ttl-to":       {filter.Selection{ExpireTo: hour(3)}, func(r *fake.Record) bool { return r.ExpireMS > 0 && r.ExpireMS < ms(3) }},
		"min-elements": {filter.Selection{MinElements: 3}, func(r *fake.Record) bool { return len(r.Elems) >= 3 }},
		"min-bytes":    {filter.Selection{MinBytes: 20}, func(r *fake.Record) bool { return size(r) >= 20 }},
		"max-bytes":    {filter.Selection{MaxBytes: 20}, func(r *fake.Record) bool { return size(r) <= 20 }},
		"no-expiry":    {filter.Selection{NoExpiry: true}, func(r *fake.Record) bool { return r.ExpireMS == 0 }},
		"exclude": {filter.Selection{Filter: filter.Filter{Exclude: []string{"*1", "*2*"}}}, func(r *fake.Record) bool {
			return !bytes.HasSuffix(r.Key, []byte("1")) && !bytes.Contains(r.Key, []byte("2"))
		}},
		"sample": {filter.Selection{Filter: filter.Filter{Sample: 3}}, func(r *fake.Record) bool { return record.HashBytes(r.Key).Lo%3 == 0 }},
		"all of them": {filter.Selection{Filter: filter.Filter{Sample: 2, Types: record.Of(record.Hash, record.ZSet)}, MinElements: 2, MinBytes: 9,
			ExpireFrom: hour(0), ExpireTo: hour(4)}, func(r *fake.Record) bool {
			return record.HashBytes(r.Key).Lo%2 == 0 && (r.Type == record.Hash || r.Type == record.ZSet) && len(r.Elems) >= 2 &&
				size(r) >= 9 && r.ExpireMS >= ms(0) && r.ExpireMS < ms(4)
		}},
	} {
		for _, sorted := range []bool{true, false} {
			b := newBench(t, records)
			b.o.Selection = &c.s
			b.from.Wrap = func(s *fake.Source) { s.Weight, s.Reversed = oneTask/2, !sorted }
			var want []string
			var filtered, expired, copied int64
			for _, r := range records {
				switch {
				case !c.s.Type(r.Type): // the type is not read
				case r.ExpireMS != 0 && r.ExpireMS < testNow.UnixMilli():
					expired += r.Rows()
				case c.pass(&r):
					copied += r.Rows()
					want = append(want, fmt.Sprintf("%s %s %s %d %d", r.DB, r.Key, r.Type, r.ExpireMS, len(r.Elems)))
				default:
					filtered += r.Rows()
				}
			}
			slices.Sort(want)
			if filtered == 0 || len(want) == 0 || expired == 0 {
				t.Fatalf("%s: %d pass, %d rows do not, %d have expired", name, len(want), filtered, expired)
			}
			dry, err := DryRun(context.Background(), &b.o)
			if err != nil {
				t.Fatal(err)
			}
			rep := b.run()
			if got := b.names("dst"); !slices.Equal(got, want) {
				t.Errorf("%s: wrote %q, want %q", name, got, want)
			}
			if !rep.Proof.Done || !slices.Equal(dry.Parts, rep.Parts) {
				t.Errorf("%s: proof %+v, dry run %+v, run %+v", name, rep.Proof, dry.Parts, rep.Parts)
			}
			classes := map[string]int64{}
			for _, a := range rep.Ledger {
				for class, n := range a.Classes {
					classes[class] += n
				}
			}
			if classes["copied"] != copied || classes["filtered"] != filtered || classes["expired"] != expired ||
				len(classes) != 3 {
				t.Errorf("%s: %v; want %d copied, %d filtered, %d expired", name, classes, copied, filtered, expired)
			}
			if _, ok := rep.Options[name]; !ok && name != "all of them" {
				t.Errorf("%s: the report has the options %v", name, rep.Options)
			}
		}
	}
}

func TestSelectionsThatCannotBe(t *testing.T) {
	hour := &filter.Moment{Ahead: time.Hour}
	for text, c := range map[string]struct {
		s     filter.Selection
		wrong bool // true if no source can match
	}{
		"no record of":               {filter.Selection{MinBytes: 1 << 40}, false},
		"the source holds no stream": {filter.Selection{Filter: filter.Filter{Types: record.Of(record.Stream)}, MinElements: 1}, false},
		"the earliest expiry":        {filter.Selection{ExpireFrom: hour, ExpireTo: hour}, true},
		"the least size of a record": {filter.Selection{MinElements: -1}, true},
		"is above the largest":       {filter.Selection{MinBytes: 7, MaxBytes: 6}, true},
		"the largest size":           {filter.Selection{MaxBytes: -1}, true},
		"keys without expiry":        {filter.Selection{NoExpiry: true, ExpireTo: hour}, true},
	} {
		for _, resume := range []bool{false, true} {
			b := newBench(t, fake.Dataset(1))
			b.o.Selection, b.o.Resume = &c.s, resume
			var wrong *SelectionError
			if _, err := DryRun(context.Background(), &b.o); err == nil || !strings.Contains(err.Error(), text) ||
				errors.As(err, &wrong) != c.wrong {
				t.Errorf("dry run: %v, want %q", err, text)
			}
			b.leaves("src")
			if _, err := Run(context.Background(), &b.o); err == nil || !strings.Contains(err.Error(), text) ||
				errors.As(err, &wrong) != c.wrong {
				t.Errorf("%v, want %q", err, text)
			}
		}
	}
}

// TestSelectionOfRivals checks that an excluded record does not take a name from a selected one.
func TestSelectionOfRivals(t *testing.T) {
	big := func(typ record.Type, n int) fake.Record {
		r := fake.Record{DB: "0", Type: typ, Key: []byte("k")}
		for i := range n {
			r.Elems = append(r.Elems, record.Element{Name: []byte(fmt.Sprint(i)), Value: []byte("v")})
		}
		return r
	}
	for _, rename := range []bool{false, true} {
		b := newBench(t, []fake.Record{big(record.Hash, 2), big(record.Set, 200), big(record.ZSet, 300)})
		b.to.Bounds.SameName = false
		b.to.Groups = []record.TypeSet{record.AllTypes}
		b.o.Selection = &filter.Selection{MinElements: 150}
		b.o.Rename = rename
		if !rename {
			b.o.Prefer = []record.Type{record.Hash, record.ZSet}
		}
		rep := b.run()
		got, want := b.names("dst"), []string{"0 k zset 0 300"}
		if rename {
			want = []string{"0 k set 0 200", "0 k:zset zset 0 300"}
		}
		if !slices.Equal(got, want) || rep.Ledger[0].Classes["filtered"] != 3 {
			t.Errorf("rename %v: wrote %q, want %q; ledger %v", rename, got, want, rep.Ledger[0].Classes)
		}
	}
}

// TestSelectionSpills checks that a record that is buffered until its size is known spills to disk beyond the memory
// limit.
func TestSelectionSpills(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	r := fake.Record{DB: "0", Type: record.List, Key: []byte("giant")}
	for i := range 20_000 {
		r.Elems = append(r.Elems, record.Element{Value: bytes.Repeat([]byte{byte(i)}, 1000)})
	}
	b := newBench(t, append(fake.Dataset(1), r))
	b.o.Memory, b.o.Workers = 16<<20, 1
	b.o.Selection = &filter.Selection{MinBytes: 19 << 20}
	reads, spilled := 0, 0
	b.from.Wrap = func(s *fake.Source) {
		s.Weight = oneTask / 61
		s.OnRead = func() {
			if reads++; reads%16 != 0 {
				return
			}
			links, _ := filepath.Glob("/proc/self/fd/*")
			for _, link := range links {
				if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, filepath.Join(b.dir, "dst.kvferry/tmp/")) {
					spilled++
				}
			}
		}
	}
	rep := b.run()
	if spilled == 0 {
		t.Error("20 MB were held in a share of 16 MiB")
	}
	if got := b.names("dst"); !slices.Equal(got, []string{"0 giant list 0 20000"}) || rep.Ledger[0].Classes["filtered"] != 180 {
		t.Errorf("wrote %q, ledger %v", got, rep.Ledger[0].Classes)
	}
}

// TestSelectionKilledAndResumed checks that relative times are resolved with the clock of the first run.
func TestSelectionKilledAndResumed(t *testing.T) {
	whole := newBench(t, expiring(fake.Dataset(1)))
	whole.crashable("never")
	whole.o.Selection = someRecords()
	want := whole.run()
	if want.Records() < 3 {
		t.Fatalf("only %d records are selected", want.Records())
	}
	for _, step := range []string{"task 0", "written 3", "record 30", "finished", "proved", "renamed"} {
		b := newBench(t, expiring(fake.Dataset(1)))
		b.o.Selection = someRecords()
		b.killed(step)
		b.crashable("never")
		b.o.Resume, b.o.Now = true, testNow.Add(2*time.Hour)
		got := b.run()
		if !slices.Equal(got.Parts, want.Parts) || !got.Proof.Done || fmt.Sprint(got.Ledger) != fmt.Sprint(want.Ledger) {
			t.Errorf("%s: %+v, want %+v", step, got, want)
		}
		if b.tree() != whole.tree() {
			t.Errorf("%s: the resumed run wrote something else", step)
		}
	}
}

// TestSelectionResumedInAClosedWindow checks a window that was open when the run began and is closed now.
func TestSelectionResumedInAClosedWindow(t *testing.T) {
	b := newBench(t, expiring(fake.Dataset(1)))
	b.o.Selection = &filter.Selection{ExpireFrom: &filter.Moment{Ahead: time.Hour},
		ExpireTo: &filter.Moment{At: testNow.Add(3 * time.Hour)}}
	b.o.Resume = true
	ctx, cancel := context.WithCancel(context.Background())
	b.o.crash = func(step string) {
		if step == "finish" {
			cancel()
		}
	}
	b.to.FailAfter = 1 // whichever comes first
	if _, err := Run(ctx, &b.o); err == nil {
		t.Fatal("no error")
	}
	b.leaves("dst.kvferry", "src")
	b.to.FailAfter, b.o.crash = 0, nil
	b.o.Now = testNow.Add(10 * time.Hour)
	if rep := b.run(); !rep.Now.Equal(testNow) || rep.Records() == 0 {
		t.Errorf("%+v", rep)
	}
}

// TestSelectionIsPartOfThePlan checks that a run cannot be resumed with another selection.
func TestSelectionIsPartOfThePlan(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *filter.Selection)
		text   string
	}{
		"sample":       {func(s *filter.Selection) { s.Sample = 3 }, "it has sample 2, not 3"},
		"ttl-from":     {func(s *filter.Selection) { s.ExpireFrom.Ahead += time.Millisecond }, "it has ttl-from 2023-11-14T23:13:20Z, not 2023-11-14T23:13:20.001Z"},
		"ttl-to":       {func(s *filter.Selection) { s.ExpireTo = nil }, "it has ttl-to 2023-11-15T01:13:20Z, not (none)"},
		"min-bytes":    {func(s *filter.Selection) { s.MinBytes = 0 }, "it has min-bytes 7, not (none)"},
		"min-elements": {func(s *filter.Selection) { s.MinElements = 2 }, "it has min-elements 1, not 2"},
		"max-bytes":    {func(s *filter.Selection) { s.MaxBytes = 9 }, "it was started without --max-bytes; leave out the flag to continue it"},
		"no-expiry":    {func(s *filter.Selection) { s.ExpireFrom, s.ExpireTo, s.NoExpiry = nil, nil, true }, "it was started without --no-expiry; leave out the flag"},
		"match":        {func(s *filter.Selection) { s.Match = []string{"*"} }, "it was started without --match; leave out the flag to continue it"},
		"expired":      {func(s *filter.Selection) { s.KeepExpired = true }, "it has expired drop, not keep"},
	} {
		b := newBench(t, expiring(fake.Dataset(1)))
		b.o.Selection = someRecords()
		b.killed("written 5")
		b.crashable("never")
		b.o.Resume = true
		c.change(b.o.Selection)
		_, err := Run(context.Background(), &b.o)
		if err == nil || !strings.Contains(err.Error(), "cannot be resumed: "+c.text) ||
			strings.Contains(err.Error(), "--resume") {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
		b.leaves("dst.kvferry", "src")
	}
}
