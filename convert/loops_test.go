package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/filter"
	"kvferry/record"
)

// endless reads records of a type without an end, each of batches of one element.
type endless struct {
	typ        record.Type
	batches    int // of a record; -1: without an end
	left       int
	next, read int // calls
	keys       func(n int) []byte
}

func (r *endless) Next() (*record.Header, error) {
	r.next++
	r.left = r.batches
	key := []byte("k")
	if r.keys != nil {
		key = r.keys(r.next)
	}
	return &record.Header{DB: "0", Type: r.typ, Key: key}, nil
}

func (r *endless) Read(dst []record.Element) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	r.read++
	dst[0] = record.Element{Name: []byte("n"), Value: []byte("v")}
	return 1, nil
}

func (r *endless) Settle(record.Class) {}
func (r *endless) Close() error        { return nil }

// TestStops: whatever is read, a task that is to stop does after as many records or batches as checkEvery says, and not before.
func TestStops(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	free := &share{most: math.MaxInt64, first: func() {}}
	rules := func() *rules { return &rules{sameName: true, allows: func(string) bool { return true }} }
	newTask := func(r record.Reader) *task {
		return &task{Task: &Task{Group: record.AllTypes}, rules: rules(), target: &fakeTarget{f: newFake()}, reader: r, losses: lossSet{},
			expiring: expiringDigests{}, share: free}
	}
	const n = checkEvery
	for name, c := range map[string]struct {
		r          *endless
		run        func(r *endless) error
		next, read int
	}{
		"copy":          {&endless{typ: record.Set, batches: 1}, func(r *endless) error { return newTask(r).copy(ctx) }, n, n},
		"copy of one":   {&endless{typ: record.Set, batches: -1}, func(r *endless) error { return newTask(r).copy(ctx) }, 1, n},
		"string":        {&endless{typ: record.String, batches: -1}, func(r *endless) error { return newTask(r).copy(ctx) }, n, n},
		"prove":         {&endless{typ: record.Set, batches: 1}, func(r *endless) error { return (&prover{rules: rules(), reader: r, share: free}).all(ctx) }, n, n},
		"prove one":     {&endless{typ: record.Set, batches: -1}, func(r *endless) error { return (&prover{rules: rules(), reader: r, share: free}).all(ctx) }, 1, n},
		"prove strings": {&endless{typ: record.String, batches: -1}, func(r *endless) error { return (&prover{rules: rules(), reader: r, share: free}).all(ctx) }, n, n},
		"look for names": {&endless{typ: record.Set, batches: 1}, func(r *endless) error {
			names := newNamesakes(1<<20, "")
			defer names.sorter.Close()
			return newTask(r).eachLoser(ctx, r, names, func(rename) error { return nil })
		}, n, n - 1},
	} {
		err := c.run(c.r)
		if !errors.Is(err, context.Canceled) || c.r.next != c.next || c.r.read != c.read {
			t.Errorf("%s: %v after %d records and %d batches, want %d and %d", name, err, c.r.next, c.r.read, c.next, c.read)
		}
	}
}

// TestForward: a record that lies up to maxPassed records ahead is read on to; one further on, or that was passed, is not.
func TestForward(t *testing.T) {
	for ahead, found := range map[int]bool{1: true, maxPassed: true, maxPassed + 1: false} {
		r := &endless{typ: record.Set, keys: func(n int) []byte { return fmt.Appendf(nil, "%03d", n) }}
		p := place{reader: r}
		h, err := p.forward(fmt.Appendf(nil, "%03d", ahead))
		if err != nil || (h != nil) != found || r.next != min(ahead, maxPassed) || p.header != nil {
			t.Errorf("%d ahead: %v, %v after %d records", ahead, h, err, r.next)
		}
	}
	r := &endless{typ: record.Set, keys: func(n int) []byte { return fmt.Appendf(nil, "%03d", 2*n) }}
	p := place{reader: r}
	for _, key := range []int{1, 2, 3, 4, 7, 8} { // what is passed over is not lost
		h, err := p.forward(fmt.Appendf(nil, "%03d", key))
		if err != nil || (h != nil) != (key%2 == 0) || h != nil && string(h.Key) != fmt.Sprintf("%03d", key) {
			t.Errorf("%d: %v, %v", key, h, err)
		}
	}
	if r.next != 4 {
		t.Errorf("%d records were read", r.next)
	}
	if h, err := new(place).forward([]byte("a")); h != nil || err != nil {
		t.Errorf("without a reader: %v, %v", h, err)
	}
}

// TestRenamedIn: those of a task's database whose new names lie in its span.
func TestRenamedIn(t *testing.T) {
	var all []rename
	for _, name := range []string{"0 b", "1 a", "1 b", "1 c", "1 d", "2 a"} {
		db, to, _ := strings.Cut(name, " ")
		all = append(all, rename{db: db, to: []byte(to)})
	}
	for span, want := range map[string]string{"- -": "a b c d", "b -": "b c d", "- c": "a b", "b d": "b c", "bb c": "", "b b": "", "e -": "", "d c": "", "bb cc": "c"} {
		lo, hi, _ := strings.Cut(span, " ")
		task := &Task{DB: "1", Group: 1}
		if lo != "-" {
			task.Span.Lo = []byte(lo)
		}
		if hi != "-" {
			task.Span.Hi = []byte(hi)
		}
		var got []string
		for _, n := range renamedIn(all, task) {
			if n.db != "1" {
				t.Errorf("%s: one of database %s", span, n.db)
			}
			got = append(got, string(n.to))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", span, got, want)
		}
		if task.Group = 0; renamedIn(all, task) != nil {
			t.Errorf("%s: of a task that writes nothing", span)
		}
	}
}

// TestOptionsInReports: every option that the result depends on is in the report, under its name on the command line;
// defaults are not.
func TestOptionsInReports(t *testing.T) {
	b := newBench(t, nil)
	b.o.Version, b.o.Selection = 3, new(filter.Selection)
	few := map[string]string{"source": "fake+files", "target": "fake+files", "layout": "db", "version-epoch": "3", "expired": "drop"}
	if got := optionTexts(&b.o); !maps.Equal(got, few) {
		t.Errorf("%v, want %v", got, few)
	}
	b.o.Namespace, b.o.MaxBitmap, b.o.Cluster, b.o.SST, b.o.Source.WALDir, b.o.Rename = "n", 5, true, true, "/wal", true
	b.o.Selection = &filter.Selection{KeepExpired: true}
	b.o.Layout, b.to.limits.Instances, b.to.limits.Slots = format.LayoutAuto, 3, 1024
	all := map[string]string{"source": "fake+files", "target": "fake+files", "layout": "auto", "version-epoch": "3", "expired": "keep", "namespace": "n", "max-bitmap": "5",
		"cluster": "yes", "sst": "yes", "wal-dir": "/wal", "on-conflict": "rename", "instances": "3", "slots": "1024"}
	if got := optionTexts(&b.o); !maps.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
	b.o.Instances, b.o.Slots, b.o.Target.Address, b.o.Rename, b.o.Prefer = 5, 7, "redis://h", false, []record.Type{record.Set, record.Hash}
	all["instances"], all["slots"], all["target"], all["on-conflict"] = "5", "7", "redis://h", "keep=[set hash]"
	if got := optionTexts(&b.o); !maps.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
}

// TestNormalize: what is left out gets its default, and what is given stays.
func TestNormalize(t *testing.T) {
	if n, err := (&Options{Now: testNow}).normalize(); err != nil || n.Workers != 1 || n.Version != 1 || n.Memory != 512<<20 || n.Selection == nil || n.crash == nil {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := (&Options{Now: testNow, Workers: 7, Version: 5, Memory: 9, Resume: true}).normalize(); err != nil || n.Workers != 7 || n.Version != 5 || n.Memory != 9 ||
		n.storeMemory() != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	for version, ok := range map[int32]bool{-1: false, 0xfe: true, 0xff: false, 0x100: true, 0x1ff: false, math.MaxInt32: false, math.MinInt32: false} {
		if _, err := (&Options{Version: version}).normalize(); (err == nil) != ok {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if _, err := (&Options{Resume: true, Discard: true}).normalize(); err == nil {
		t.Error("a conversion is resumed and discarded")
	}
}

// TestReadBack: a target is opened again to be proved, or to be asked what it consists of.
func TestReadBack(t *testing.T) {
	for _, c := range []struct {
		address         string
		verify, noProve bool
		place           format.Place
		want            bool
	}{
		{place: format.InDirectory, want: true}, {noProve: true, place: format.InDirectory, want: true}, {place: format.InFile, want: true},
		{noProve: true, place: format.InFile}, {address: "a", place: format.OnServer}, {address: "a", verify: true, place: format.OnServer, want: true},
	} {
		f := newFake()
		f.limits.Place = c.place
		o := &Options{NoProve: c.noProve, Target: Output{Format: f, Address: c.address, Verify: c.verify}}
		if o.readBack() != c.want {
			t.Errorf("%+v", c)
		}
		a := &attempt{run: &run{o: o, work: &work{dir: "/w"}}}
		if open := a.reopen(); (open != nil) != c.want {
			t.Errorf("%+v: opened with %+v", c, open)
		}
	}
}

// TestFindings: findings of one kind are counted, the first of them are shown with their places, and the gravest kinds
// come first.
func TestFindings(t *testing.T) {
	place := record.Place{File: "000012.sst", Off: 77}
	var tasks [2]findingSet
	losses, errs := "", 0
	for i := range tasks {
		tasks[i].onLoss, tasks[i].onError = func(kind string) { losses += kind + " " }, func() { errs++ }
	}
	for i := range 4 {
		tasks[0].report(record.Finding{Kind: "count", Severity: record.Error, DB: "0", Type: record.Hash, Key: []byte{'a' + byte(i)}, Place: place, Detail: fmt.Sprint(i)})
		tasks[1].report(record.Finding{Kind: "count", Severity: record.Error, DB: "1", Keyspace: "meta", Detail: fmt.Sprint(i)})
	}
	tasks[0].report(record.Finding{Kind: "a warning", Severity: record.Warning, Place: record.Place{File: "CURRENT", Off: -1}, Detail: "d"})
	tasks[0].report(record.Finding{Kind: "another", Severity: record.Warning})
	tasks[1].report(record.Finding{Kind: record.LossStreamGroups, Severity: record.Note, Detail: "g"})
	tasks[1].report(record.Finding{Kind: record.LossCommand, Severity: record.Note, Detail: "c"})
	var all findingSet
	all.merge(tasks[0].list())
	all.merge(tasks[1].list())
	want := `[{count error 8 [hash "a" in database 0 (0 [000012.sst, offset 77]) hash "b" in database 0 (1 [000012.sst, offset 77]) ` +
		`hash "c" in database 0 (2 [000012.sst, offset 77]) hash "d" in database 0 (3 [000012.sst, offset 77]) in database 1 (0 [meta])]} ` +
		`{a warning warning 1 [(d [CURRENT])]} {another warning 1 []} {aof-command note 1 [(c)]} {stream-groups note 1 [(g)]}]`
	if got := fmt.Sprint(all.list()); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if want := "damaged damaged damaged damaged damaged damaged damaged damaged stream-groups aof-command "; losses != want || errs != 8 {
		t.Errorf("losses %s, %d errors", losses, errs)
	}
	want = `[{aof-command 1 true false false [(c)]} {damaged 8 true false false [hash "a" in database 0 (count: 0 [000012.sst, offset 77]) ` +
		`hash "b" in database 0 (count: 1 [000012.sst, offset 77]) hash "c" in database 0 (count: 2 [000012.sst, offset 77]) ` +
		`hash "d" in database 0 (count: 3 [000012.sst, offset 77]) in database 1 (count: 0 [meta])]} {stream-groups 1 true false false [(g)]}]`
	if got := fmt.Sprint(found(all.list())); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

// TestPublishedErrors: what is said when a target is complete and something failed behind it.
func TestPublishedErrors(t *testing.T) {
	boom := errors.New("boom")
	for e, want := range map[*PublishedError]string{
		{Target: "/t", Dir: "/t.kvferry", Synced: true, Err: boom}: "/t is complete, but /t.kvferry, which is no longer needed, could not be removed: boom; remove it",
		{Target: "/t", Dir: "/t.kvferry", Err: boom}: "/t is complete and its report belongs in /t.kvferry-report.json, but the disk has not confirmed their names: boom; " +
			"sync the disk and look for them before you rely on them",
	} {
		if e.Error() != want || !errors.Is(e, boom) {
			t.Errorf("%s, want %s", e, want)
		}
	}
}
