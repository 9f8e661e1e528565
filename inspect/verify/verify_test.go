package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/inspect/internal/fake"
	"kvferry/record"
	"kvferry/store"
)

// entry makes an entry of table t: "key", "key del" or "key range".
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

// openTables opens a fake source over a store, as a command would.
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
		{"a tombstone too many", table(2, 0), []string{"a", "b del"}, "warning delete-count-mismatch db/t@-1", false},
		{"order", table(3, 0), []string{"a", "c", "b"}, "error key-order db/t@0", false},
		{"outside", table(2, 0), []string{"b", "n"}, "error file-bounds db/t@0", false},
		{"damage explains what is missing", table(9, 0), []string{"a"}, "error damaged-block db/t@7", true},
	} {
		st := &fake.Tables{Listed: []store.File{c.file}}
		for i, r := range c.rows {
			st.Entries = append(st.Entries, entry(r, uint64(100-i)))
		}
		if c.blind {
			st.Damage = &record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Place: record.Place{File: "db/t", Off: 7}}
		}
		v, got := verify(t, &Options{Open: openTables(fake.New(), st), Files: Always})
		if got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
		if v.Entries != int64(len(c.rows)) || v.Files != 1 {
			t.Errorf("%s: %d entries in %d files", c.name, v.Entries, v.Files)
		}
	}
	// The same key again must be older.
	st := &fake.Tables{Listed: []store.File{table(2, 0)}, Entries: []store.Entry{entry("a", 5), entry("a", 6)}}
	if _, got := verify(t, &Options{Open: openTables(fake.New(), st), Files: Always}); got != "error key-order db/t@0" {
		t.Errorf("ascending sequence numbers: %q", got)
	}
	if _, got := verify(t, &Options{Open: openTables(fake.New(), st), Files: Never}); got != "" {
		t.Errorf("without a look at the files: %q", got)
	}
}

func TestVerifyRecords(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("x"), fake.Member("y")), fake.Rec(record.Set, "b"), fake.Rec(record.Hash, "h", fake.Pair("f", "v")).Expires(1))
	src.Fail = func(h *record.Header, e *format.Env) error {
		if !e.Deep {
			t.Error("the format is not asked for everything")
		}
		for range 3 {
			e.Report(record.Finding{Kind: "count-mismatch", Severity: record.Error, DB: "0", Type: h.Type, Key: bytes.Clone(h.Key)})
		}
		e.Report(record.Finding{Kind: "orphan-rows", Severity: record.Warning, Key: bytes.Clone(h.Key)})
		return nil
	}
	v, _ := verify(t, &Options{Open: openTables(src, &fake.Tables{}), MaxFindings: 4})
	if v.Records != 2 || v.Expired != 1 || v.Elements != 3 || v.Rows != 3 {
		t.Errorf("%d records, %d expired, %d elements, %d rows: expired records are to be looked at too", v.Records, v.Expired, v.Elements, v.Rows)
	}
	if fmt.Sprint(v.Counts) != "[{count-mismatch error 9} {orphan-rows warning 3}]" || v.Total(record.Warning) != 12 || v.Total(record.Error) != 9 {
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

// Verify goes on with the other parts when one cannot be read, and says so.
func TestVerifyGoesOn(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&record.CorruptError{File: "/data/db/t", Off: 99, Field: "block", Err: errors.New("checksum")}, "error damaged-block db/t@99"},
		{errors.New("disk on fire"), "error unread-rows @0"},
	} {
		src := fake.New(fake.Rec(record.Set, "a", fake.Member("x")), fake.Rec(record.Hash, "h", fake.Pair("f", "v")), fake.Rec(record.ZSet, "z", fake.Scored("m", 1)))
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

// A record of which some elements cannot be read is not one that was checked.
func TestVerifyCountsWholeRecords(t *testing.T) {
	src := fake.New(fake.Rec(record.Hash, "g", fake.Pair("f", "v")), fake.Rec(record.Hash, "h", fake.Pair("1", ""), fake.Pair("2", ""), fake.Pair("3", ""), fake.Pair("4", "")))
	src.FailInside = func(*record.Header) error { return errors.New("disk on fire") }
	v, got := verify(t, &Options{Open: openTables(src, &fake.Tables{})})
	if got != "error unread-rows @0" || v.Records != 1 || v.Elements != 1 {
		t.Errorf("found %q, %d records, %d elements", got, v.Records, v.Elements)
	}
}

// Rows out of order lead to one finding and a second reading with everything sorted.
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
	if want := "error key-order db/t@5, error count-mismatch @0, error count-mismatch @0"; got != want || v.Records != 2 || len(v.Unread) != 0 {
		t.Errorf("found %q, %d records", got, v.Records)
	}
}

// A ledger that does not add up is a finding of its own.
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
	// When a finding says why, that is the answer.
	o.Open = func(_ context.Context, how inspect.Opening) (format.Source, error) {
		how.Report(record.Finding{Kind: record.FindMissingFile, Severity: record.Error})
		return nil, boom
	}
	if v, err := Run(context.Background(), o); err != nil || v.Total(record.Error) != 1 {
		t.Errorf("got %v, %v", v, err)
	}
	// So is damage that has a place: in a block of a store, or in a file that has none.
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
