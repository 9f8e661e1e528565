package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// entry makes an entry of table t from "key", "key del" or "key range".
func entry(text string, seq uint64) store.Entry {
	key, kind, _ := strings.Cut(text, " ")
	e := store.Entry{Key: []byte(key), Seq: seq, Place: record.Place{File: "t"}}
	switch kind {
	case "del":
		e.Kind = store.Delete
	case "range":
		e.Kind, e.Value = store.RangeDelete, []byte("z")
	}
	return e
}

func table(entries, deletes int64) store.File {
	return store.File{Path: "t", Kind: "table", Keyspace: "default", Entries: entries, Deletes: deletes,
		Smallest: []byte("a"), Largest: []byte("m")}
}

// openTables opens a fake source over a store, like a command.
func openTables(src *fake.Source, st *fake.Tables) func(context.Context, inspect.Opening) (format.Source, error) {
	return func(ctx context.Context, how inspect.Opening) (format.Source, error) {
		st.Report = how.Report
		open := how.Wrap(func(context.Context, string, *store.Options) (store.Store, error) { return st, nil })
		if _, err := open(ctx, "/data/db", &store.Options{Report: how.Report}); err != nil {
			return nil, err
		}
		return src, nil
	}
}

func verify(t *testing.T, o *Options) (*Outcome, string) {
	t.Helper()
	o.Scan.Now, o.Root = fake.Now, "/data"
	o.Keyspaces = func(string) []format.KeyspaceEvidence { return nil }
	if o.MaxFindings == 0 {
		o.MaxFindings = 10
	}
	v, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, f := range v.Findings {
		kinds = append(kinds, fmt.Sprintf("%s %s %s@%d", f.Severity, f.Kind, f.Place.File, f.Place.Off))
	}
	return v, strings.Join(kinds, ", ")
}

func TestPhysical(t *testing.T) {
	for _, c := range []struct {
		name  string
		file  store.File
		rows  []string
		want  string
		blind bool // a block of the table is damaged
	}{
		{"sound", table(4, 1), []string{"a", "b del", "c", "c"}, "", false},
		{"no properties", table(-1, -1), []string{"a"}, "", false},
		{"range tombstones counted", table(2, 1), []string{"a range", "b"}, "", false},
		{"range tombstones not counted", table(1, 0), []string{"a range", "b"}, "", false},
		{"an entry too few", table(3, 0), []string{"a", "b"}, "error entry-count-mismatch db/t@-1", false},
		{"a tombstone too many", table(2, 0), []string{"a", "b del"}, "error delete-count-mismatch db/t@-1", false},
		{"order", table(3, 0), []string{"a", "c", "b"}, "error key-order db/t@0", false},
		{"outside", table(2, 0), []string{"b", "n"}, "error file-bounds db/t@0", false},
		{"damage explains what is missing", table(9, 0), []string{"a"}, "error damaged-block db/t@7", true},
	} {
		st := &fake.Tables{Listed: []store.File{c.file}}
		for i, r := range c.rows {
			st.Entries = append(st.Entries, entry(r, uint64(100-i)))
		}
		if c.blind {
			st.Damage = &record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error,
				Place: record.Place{File: "db/t", Off: 7}}
		}
		v, got := verify(t, &Options{Open: openTables(fake.New(), st), Files: Always})
		if got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
		if v.Entries != int64(len(c.rows)) || v.Files != 1 {
			t.Errorf("%s: %d entries in %d files", c.name, v.Entries, v.Files)
		}
	}
	// A second entry of the same key must be older.
	st := &fake.Tables{Listed: []store.File{table(2, 0)}, Entries: []store.Entry{entry("a", 5), entry("a", 6)}}
	if _, got := verify(t, &Options{Open: openTables(fake.New(), st), Files: Always}); got != "error key-order db/t@0" {
		t.Errorf("ascending sequence numbers: %q", got)
	}
	if _, got := verify(t, &Options{Open: openTables(fake.New(), st), Files: Never}); got != "" {
		t.Errorf("without a look at the files: %q", got)
	}
}

func TestVerifyRecords(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("x"), fake.Member("y")), fake.Rec(record.Set, "b"),
		fake.Rec(record.Hash, "h", fake.Pair("f", "v")).Expires(1))
	src.Fail = func(h *record.Header, e *format.Env) error {
		if !e.Deep {
			t.Error("the format is not asked for everything")
		}
		for range 3 {
			e.Report(record.Finding{Kind: "count-mismatch", Severity: record.Error, DB: "0", Type: h.Type,
				Key: bytes.Clone(h.Key)})
		}
		e.Report(record.Finding{Kind: "orphan-rows", Severity: record.Warning, Key: bytes.Clone(h.Key)})
		return nil
	}
	v, _ := verify(t, &Options{Open: openTables(src, &fake.Tables{}), MaxFindings: 4})
	if v.Records != 2 || v.Expired != 1 || v.Elements != 3 || v.Rows != 3 {
		t.Errorf("%d records, %d expired, %d elements, %d rows: expired records are to be looked at too", v.Records, v.Expired,
			v.Elements, v.Rows)
	}
	if fmt.Sprint(v.Counts) != "[{count-mismatch error 9 0 0} {orphan-rows warning 3 0 0}]" || v.Total(record.Warning) != 12 ||
		v.Total(record.Error) != 9 {
		t.Errorf("counts %v", v.Counts)
	}
	var keys []string
	for _, f := range v.Findings {
		keys = append(keys, string(f.Key))
	}
	if strings.Join(keys, "") != "aaab" {
		t.Errorf("findings kept: %q, want the first in order", keys)
	}
}

// TestVerifyGoesOn checks that verify continues with other parts if one cannot be read, and reports it.
func TestVerifyGoesOn(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&record.CorruptError{File: "/data/db/t", Off: 99, Field: "block", Err: errors.New("checksum")}, "error damaged-block db/t@99"},
		{errors.New("disk on fire"), "error unread-rows @0"},
	} {
		src := fake.New(fake.Rec(record.Set, "a", fake.Member("x")), fake.Rec(record.Hash, "h", fake.Pair("f", "v")),
			fake.Rec(record.ZSet, "z", fake.Scored("m", 1)))
		src.Fail = func(h *record.Header, _ *format.Env) error {
			if h.Type == record.Hash {
				return c.err
			}
			return nil
		}
		v, got := verify(t, &Options{Open: openTables(src, &fake.Tables{})})
		if got != c.want || v.Records != 2 || len(v.Unread) != 1 || v.Unread[0] != "database 0, hash" {
			t.Errorf("found %q, %d records, unread %q", got, v.Records, v.Unread)
		}
	}
}

// TestVerifyCountsWholeRecords checks that a record with unreadable elements does not count as verified.
func TestVerifyCountsWholeRecords(t *testing.T) {
	src := fake.New(fake.Rec(record.Hash, "g", fake.Pair("f", "v")),
		fake.Rec(record.Hash, "h", fake.Pair("1", ""), fake.Pair("2", ""), fake.Pair("3", ""), fake.Pair("4", "")))
	src.FailInside = func(*record.Header) error { return errors.New("disk on fire") }
	v, got := verify(t, &Options{Open: openTables(src, &fake.Tables{})})
	if got != "error unread-rows @0" || v.Records != 1 || v.Elements != 1 {
		t.Errorf("found %q, %d records, %d elements", got, v.Records, v.Elements)
	}
}

// TestVerifyResorts checks that rows out of order cause one finding and a second pass with all tables sorted.
func TestVerifyResorts(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("x")), fake.Rec(record.Set, "b", fake.Member("x")))
	opened := 0
	src.Fail = func(h *record.Header, e *format.Env) error {
		e.Report(record.Finding{Kind: "count-mismatch", Severity: record.Error, Key: bytes.Clone(h.Key)})
		if string(h.Key) == "b" && opened == 1 {
			return &store.OrderError{File: "/data/db/t", Off: 5, Comparer: "c", Prev: []byte("b"), Next: []byte("a")}
		}
		return nil
	}
	open := openTables(src, &fake.Tables{})
	v, got := verify(t, &Options{Open: func(ctx context.Context, how inspect.Opening) (format.Source, error) {
		if opened++; how.Resort != (opened == 2) {
			t.Errorf("opening %d: resort %v", opened, how.Resort)
		}
		if how.Resort {
			how.Report(record.Finding{Kind: record.FindUnorderedTable, Severity: record.Warning})
		}
		return open(ctx, how)
	}})
	want := "error key-order db/t@5, error count-mismatch @0, error count-mismatch @0"
	if got != want || v.Records != 2 || len(v.Unread) != 0 {
		t.Errorf("found %q, %d records", got, v.Records)
	}
}

// TestVerifyOpensResorted checks that rows out of order that a source meets while it is opened, as the namespaces of
// Kvrocks, are one finding, and that it is opened again with all tables sorted.
func TestVerifyOpensResorted(t *testing.T) {
	open := openTables(fake.New(fake.Rec(record.Set, "a", fake.Member("x"))), &fake.Tables{})
	v, got := verify(t, &Options{Open: func(ctx context.Context, how inspect.Opening) (format.Source, error) {
		if !how.Resort {
			return nil, &store.OrderError{File: "/data/db/t", Off: 5, Comparer: "c", Prev: []byte("b"), Next: []byte("a")}
		}
		return open(ctx, how)
	}})
	if got != "error key-order db/t@5" || v.Records != 1 || len(v.Unread) != 0 {
		t.Errorf("found %q, %d records", got, v.Records)
	}
}

// TestVerifyLedger checks that a ledger that does not add up is a finding.
func TestVerifyLedger(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("x")))
	src.Fail = func(_ *record.Header, e *format.Env) error {
		e.Ledger.Add("fake", &record.Tally{Entries: 1})
		return nil
	}
	if _, got := verify(t, &Options{Open: openTables(src, &fake.Tables{})}); got != "error ledger-mismatch @0" {
		t.Errorf("found %q", got)
	}
}

func TestVerifyCannotOpen(t *testing.T) {
	boom := errors.New("boom")
	o := &Options{MaxFindings: 5, Open: func(context.Context, inspect.Opening) (format.Source, error) { return nil, boom }}
	if _, err := Run(context.Background(), o); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	// If a finding gives the reason, Run returns no error.
	o.Open = func(_ context.Context, how inspect.Opening) (format.Source, error) {
		how.Report(record.Finding{Kind: record.FindMissingFile, Severity: record.Error})
		return nil, boom
	}
	if v, err := Run(context.Background(), o); err != nil || v.Total(record.Error) != 1 {
		t.Errorf("got %v, %v", v, err)
	}
	// Damage with a place is a finding, too: in a block of a store, or in a file without blocks.
	for want, stores := range map[string]bool{"error damaged-block db/t@3": true, "error damaged-file db/t@3": false} {
		o.Open = func(ctx context.Context, how inspect.Opening) (format.Source, error) {
			open := how.Wrap(func(context.Context, string, *store.Options) (store.Store, error) { return nil, store.ErrNotStore })
			if stores {
				_, _ = open(ctx, filepath.Join(t.TempDir(), "none"), &store.Options{})
			}
			return nil, &record.CorruptError{File: "/data/db/t", Off: 3, Field: "page", Err: boom}
		}
		if v, got := verify(t, o); got != want || len(v.Unread) != 1 {
			t.Errorf("got %s, want %s, unread %q", got, want, v.Unread)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.Open = openTables(fake.New(fake.Rec(record.Set, "a", fake.Member("x"))), &fake.Tables{})
	o.Keyspaces = func(string) []format.KeyspaceEvidence { return nil }
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestVerifySkips checks that damage that a store reports and skips counts once and triggers a pass over the files.
func TestVerifySkips(t *testing.T) {
	damage := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Place: record.Place{File: "t", Off: 7}}
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("x")))
	st := &fake.Tables{Listed: []store.File{table(1, 0)}, Entries: []store.Entry{entry("a", 1)}, Damage: &damage}
	src.Fail = func(*record.Header, *format.Env) error {
		st.Report(damage)
		return nil
	}
	v, got := verify(t, &Options{Open: openTables(src, st)})
	if got != "error damaged-block t@7" || v.Skipped != 1 || v.Entries != 1 {
		t.Errorf("found %q, %d skipped, %d entries", got, v.Skipped, v.Entries)
	}
}

// TestVerifySuspects checks that Automatic runs the pass over the files if their properties do not match the entries
// read.
func TestVerifySuspects(t *testing.T) {
	log := store.File{Path: "l", Kind: "log", Keyspace: "default", Entries: -1, Deletes: -1}
	other := store.File{Path: "m", Kind: "manifest", Entries: -1, Deletes: -1}
	for _, c := range []struct {
		name  string
		files []store.File
		types record.TypeSet
		looks bool
	}{
		{"they do", []store.File{table(1, 0), other}, 0, false},
		{"they do not", []store.File{table(2, 0)}, 0, true},
		{"a table says nothing", []store.File{table(-1, -1)}, 0, true},
		{"a log says nothing", []store.File{log}, 0, false},
		{"a part", []store.File{table(2, 0)}, record.Of(record.Set), false},
	} {
		src := fake.New(fake.Rec(record.Set, "a", fake.Member("x")))
		st := &fake.Tables{Listed: c.files, Entries: []store.Entry{entry("a", 1), entry("b", 1), entry("c", 1)}}
		o := &Options{Open: openTables(src, st)}
		o.Scan.Selection = &filter.Selection{Filter: filter.Filter{Types: c.types}}
		v, _ := verify(t, o)
		if (v.Entries == 3) != c.looks {
			t.Errorf("%s: %d entries", c.name, v.Entries)
		}
	}
}

// checked is a store that implements store.BlockChecker.
type checked struct {
	*fake.Tables
	checks int
	err    error
}

func (s *checked) CheckBlocks(context.Context) error { s.checks++; return s.err }

// whereSource is a source that knows where keys are stored.
type whereSource struct {
	*fake.Source
	ranges []format.Range
}

func (s *whereSource) Where(string, []byte) []format.Range { return s.ranges }

// TestVerifyConcerns checks that only files of stores with selected records are checked, and that blocks without rows
// are checked unless Never is set.
func TestVerifyConcerns(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name   string
		filter filter.Filter
		owned  bool
		files  Look
		err    error
		checks int
	}{
		{"everything", filter.Filter{}, true, Automatic, nil, 1},
		{"nobody wants it", filter.Filter{}, true, Never, nil, 0},
		{"its type", filter.Filter{Types: record.Of(record.Hash)}, true, Always, nil, 1},
		{"another type", filter.Filter{Types: record.Of(record.Set)}, true, Always, nil, 0},
		{"another database", filter.Filter{DBs: []string{"1"}}, true, Always, nil, 0},
		{"nobody's", filter.Filter{Types: record.Of(record.Set)}, false, Always, nil, 1},
		{"a failure", filter.Filter{}, true, Automatic, boom, 1},
	} {
		src := &whereSource{fake.Named("0", "1"),
			[]format.Range{{Keyspace: "other", Type: record.Set}, {Keyspace: "ks", Type: record.Hash}}}
		st := &checked{Tables: &fake.Tables{}, err: c.err}
		ks := st.Keyspaces()[0]
		shared := &sameSpace{st, ks}
		if c.owned {
			src.Spaces = []format.Keyspace{{DB: "0", Name: "ks", Keyspace: ks}}
		}
		o := &Options{Files: c.files, MaxFindings: 5, Root: "/data",
			Open: func(ctx context.Context, how inspect.Opening) (format.Source, error) {
				open := how.Wrap(func(context.Context, string, *store.Options) (store.Store, error) { return shared, nil })
				_, err := open(ctx, "/data/db", &store.Options{})
				return src, err
			}}
		o.Scan.Now, o.Scan.Selection = fake.Now, &filter.Selection{Filter: c.filter}
		if _, err := Run(context.Background(), o); !errors.Is(err, c.err) || st.checks != c.checks {
			t.Errorf("%s: %d checks, %v", c.name, st.checks, err)
		}
	}
}

// sameSpace is a store that always returns the same keyspace value.
type sameSpace struct {
	*checked
	ks store.Keyspace
}

func (s *sameSpace) Keyspaces() []store.Keyspace { return []store.Keyspace{s.ks} }

// TestVerifyStandsIn checks that a store that cannot be opened is a finding and is replaced by an empty one, so that
// the rest is verified.
func TestVerifyStandsIn(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	if err := os.MkdirAll(db, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(db, "000001.sst"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	mine := store.Comparer{Name: "mine", Compare: bytes.Compare}
	for _, c := range []struct {
		err  error
		want string
	}{
		{store.ErrNotStore, "error missing-file db/CURRENT@-1"},
		{&store.MissingError{File: filepath.Join(db, "000007.sst"), By: "MANIFEST"}, "error missing-file db/000007.sst@-1"},
		{&record.CorruptError{File: filepath.Join(db, "MANIFEST-000003"), Off: 9, Field: "record", Err: errors.New("checksum")}, "error damaged-file db/MANIFEST-000003@9"},
		{errors.New("disk on fire"), "error unreadable-store db@-1"},
	} {
		var st store.Store
		o := &Options{MaxFindings: 5, Root: dir,
			Open: func(ctx context.Context, how inspect.Opening) (src format.Source, err error) {
				open := how.Wrap(func(context.Context, string, *store.Options) (store.Store, error) { return nil, c.err })
				st, err = open(ctx, db, &store.Options{Comparers: []store.Comparer{mine}})
				return fake.New(fake.Rec(record.Set, "a", fake.Member("x"))), err
			}}
		for _, known := range []bool{true, false} {
			o.Keyspaces = func(string) []format.KeyspaceEvidence {
				if !known {
					return nil
				}
				return []format.KeyspaceEvidence{{Name: "zsets", Comparer: "mine"}}
			}
			v, err := Run(context.Background(), o)
			if err != nil || v.Records != 1 || len(v.Findings) != 1 || len(v.Unread) != 1 || v.Unread[0] != "all of db" {
				t.Fatalf("%v: %+v, %v", c.err, v, err)
			}
			f := v.Findings[0]
			if got := fmt.Sprintf("%s %s %s@%d", f.Severity, f.Kind, f.Place.File, f.Place.Off); got != c.want {
				t.Errorf("%v: found %s, want %s", c.err, got, c.want)
			}
			ks := st.Keyspaces()[0]
			if want := map[bool]string{true: "zsets mine", false: "default " + store.Bytewise.Name}[known]; ks.Name()+" "+
				ks.Comparer().Name != want {
				t.Errorf("%v: stands in with %s, %s", c.err, ks.Name(), ks.Comparer().Name)
			}
		}
	}
	o := &Options{Root: dir, Open: func(ctx context.Context, how inspect.Opening) (format.Source, error) {
		open := how.Wrap(func(context.Context, string, *store.Options) (store.Store, error) {
			return nil, &store.LiveError{Dir: db}
		})
		_, err := open(ctx, db, &store.Options{})
		return nil, err
	}}
	var live *store.LiveError
	if _, err := Run(context.Background(), o); !errors.As(err, &live) {
		t.Errorf("a store in use: %v", err)
	}
}

// TestVerifyCountsStrings checks that strings count as records, also in batches.
func TestVerifyCountsStrings(t *testing.T) {
	src := fake.New(fake.Rec(record.String, "a", fake.Value("1")), fake.Rec(record.String, "b", fake.Value("2")).Expires(1))
	src.Whole = true
	v, got := verify(t, &Options{Open: openTables(src, &fake.Tables{})})
	if got != "" || v.Records != 2 || v.Expired != 1 || v.Elements != 2 {
		t.Errorf("found %q, %+v", got, v)
	}
}

// TestVerifyAccess checks that inaccessible files are an error and not a finding.
func TestVerifyAccess(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "t", Err: fs.ErrPermission}
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("x")))
	src.Fail = func(*record.Header, *format.Env) error { return denied }
	for name, open := range map[string]func(context.Context, inspect.Opening) (format.Source, error){
		"a record": openTables(src, &fake.Tables{}),
		"a store":  func(context.Context, inspect.Opening) (format.Source, error) { return nil, denied },
	} {
		if _, err := Run(context.Background(), &Options{Root: "/data", Open: open}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLeftover checks that damage met by the pass over records is not reported again if the pass over files has found
// it, under the same kind or another.
func TestLeftover(t *testing.T) {
	at := func(kind string) record.Finding {
		f := record.Finding{Kind: kind, Severity: record.Error, Place: record.Place{File: "db/t"}}
		if kind == record.FindUnreadRows {
			f.Place.File = "" // the finding is about a part
		}
		return f
	}
	for _, c := range []struct {
		damage, found string
		want          int64
	}{
		{record.FindDamagedBlock, record.FindDamagedBlock, 1}, {record.FindDamagedBlock, record.FindDamagedPage, 1},
		{record.FindKeyOrder, record.FindFileBounds, 1}, {record.FindUnreadRows, record.FindUnreadRows, 2},
		{record.FindDamagedBlock, record.FindFileBounds, 2},
	} {
		v := &verifier{found: newCollector(9), damage: []record.Finding{at(c.damage)}}
		one := newCollector(9)
		one.report(at(c.found))
		v.found.merge(one)
		v.leftover()
		if n := (&Outcome{Counts: v.result().Counts}).Total(record.Error); n != c.want {
			t.Errorf("%s after %s: %d findings, want %d", c.damage, c.found, n, c.want)
		}
	}
}

// TestPartsOfVerify checks that parts, whose reports are encoded, add up to the outcome of one run: each finds damage that
// all of them see, and its own.
func TestPartsOfVerify(t *testing.T) {
	for _, files := range []Look{Automatic, Always, Never} {
		src := fake.Named("0", "1")
		src.DBs = append(src.DBs, "\xff")
		src.Held["\xff"] = src.Held["1"]
		src.Fail = func(h *record.Header, e *format.Env) error {
			e.Ledger.Add("\xff", &record.Tally{Entries: 2, Visible: 1, Superseded: 1,
				Rows: [record.NumClasses]int64{record.Copied: 1}})
			e.Report(record.Finding{Kind: "count-mismatch", Severity: record.Error, DB: h.DB, Type: h.Type,
				Key: bytes.Clone(h.Key), Missing: 2, Place: record.Place{File: "\xff/t"}})
			if h.Type == record.Set && h.DB == "1" {
				return &record.CorruptError{File: "/data/db/t", Off: 99, Field: "block", Err: errors.New("checksum")}
			}
			return nil
		}
		damage := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Place: record.Place{File: "t", Off: 7}}
		st := &fake.Tables{Listed: []store.File{table(1, 0)}, Entries: []store.Entry{entry("a", 1)}, Damage: &damage}
		opens := openTables(src, st)
		open := func(ctx context.Context, how inspect.Opening) (format.Source, error) {
			how.Report(record.Finding{Kind: record.FindLastSequence, Severity: record.Warning}) // without a place
			how.Report(record.Finding{Kind: "no-log", Severity: record.Warning,
				Place: record.Place{File: "db", Off: record.NoOffset}})
			return opens(ctx, how)
		}
		options := func() *Options {
			return &Options{Open: open, Root: "/data", MaxFindings: 5, Files: files, Scan: inspect.Scan{Now: fake.Now}}
		}
		want, err := Run(context.Background(), options())
		if err != nil || want.Total(record.Warning) < 5 {
			t.Fatalf("%+v, %v", want, err)
		}
		var parts []*Partial
		for k := range 4 {
			o := options()
			o.Scan.Share = pass.Part{K: k + 1, N: 4}
			p, tasks, err := RunPart(context.Background(), o)
			if err != nil || len(tasks) < 3 {
				t.Fatal(len(tasks), err)
			}
			data, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			got := new(Partial)
			if err := json.Unmarshal(data, got); err != nil || !got.Failed(record.Warning) {
				t.Errorf("%s: %v", data, err)
			}
			parts = append(parts, got)
		}
		got, err := Merge(parts)
		var look *LookError
		if files == Automatic {
			if !errors.As(err, &look) {
				t.Error(err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("--files %d: %v\n%+v\nwant\n%+v", files, err, got, want)
		}
	}
	if _, err := Merge(nil); err == nil {
		t.Error("no parts")
	}
}
