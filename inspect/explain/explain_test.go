package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/inspect/internal/fake"
	"kvferry/internal/dataset"
	"kvferry/internal/filter"
	"kvferry/record"
	"kvferry/store"
)

// explained is a source of one keyspace. Rows are "meta <count> <version> <expiry in seconds>" under m, and "row
// <version>" under d….
type explained struct {
	*fake.Source
	space *entrySpace
}

func newExplained(entries ...store.Entry) *explained {
	s := &explained{fake.New(), &entrySpace{dataset.Absent("x"), entries}}
	s.Spaces = []format.Keyspace{{DB: "0", Name: "x", Keyspace: s.space}}
	return s
}

func (s *explained) Where(string, []byte) []format.Range {
	return []format.Range{{Keyspace: "x", Type: record.Hash, Lo: []byte("m"), Hi: []byte("n")},
		{Keyspace: "x", Type: record.Hash, Lo: []byte("d"), Hi: []byte("e")}}
}

func (s *explained) Describe(_, _ string, key, value []byte) format.Row {
	row := format.Row{Kind: "data", Type: record.Hash, UserKey: []byte("k"), Version: -1, Count: -1}
	if strings.HasSuffix(string(key), "other") {
		row.UserKey = []byte("other")
	}
	var seconds int64
	switch {
	case len(value) == 0:
	case key[0] == 'm':
		row.Kind, row.Meta = "meta", true
		if _, err := fmt.Sscanf(string(value), "%d %d %d", &row.Count, &row.Version, &seconds); err != nil {
			row.Err = errors.New("short")
		}
		row.ExpireMS = seconds * 1000
	default:
		fmt.Sscanf(string(value), "%d", &row.Version)
	}
	return row
}

type entrySpace struct {
	dataset.Absent
	entries []store.Entry
}

func (k *entrySpace) in(lo, hi []byte) (out []store.Entry) {
	for _, e := range k.entries {
		if string(e.Key) >= string(lo) && string(e.Key) < string(hi) {
			out = append(out, e)
		}
	}
	return out
}

func (k *entrySpace) Entries(lo, hi []byte) (store.EntryIterator, error) {
	return &entryList{left: k.in(lo, hi)}, nil
}

// Rows shows the newest entry of each key, unless it is deleted.
func (k *entrySpace) Rows(lo, hi []byte) (store.Iterator, error) {
	it := &entryList{}
	last := ""
	for _, e := range k.in(lo, hi) {
		if string(e.Key) != last && e.Kind == store.Put && !e.Covered {
			it.left = append(it.left, e)
		}
		if e.Kind != store.RangeDelete {
			last = string(e.Key)
		}
	}
	return &rowList{it}, nil
}

type entryList struct{ left []store.Entry }

func (l *entryList) Next() (*store.Entry, error) {
	if len(l.left) == 0 {
		return nil, io.EOF
	}
	e := l.left[0]
	l.left = l.left[1:]
	return &e, nil
}

func (l *entryList) Close() error { return nil }

type rowList struct{ l *entryList }

func (r *rowList) Next() (key, value []byte, err error) {
	e, err := r.l.Next()
	if err != nil {
		return nil, nil, err
	}
	return e.Key, e.Value, nil
}
func (r *rowList) SeekGE([]byte) error { return nil }
func (r *rowList) Place() record.Place { return record.Place{} }
func (r *rowList) Tally(*record.Tally) {}
func (r *rowList) Close() error        { return nil }

// e makes an entry: key, kind or value, sequence number.
func e(key, what string, seq uint64) store.Entry {
	out := store.Entry{Key: []byte(key), Seq: seq}
	switch what {
	case "delete":
		out.Kind = store.Delete
	case "merge":
		out.Kind, out.Value = store.Merge, []byte("1")
	case "range":
		out.Kind, out.Value = store.RangeDelete, []byte("dz")
	default:
		out.Value = []byte(what)
	}
	return out
}

func covered(x store.Entry) store.Entry {
	x.Covered = true
	return x
}

func explain(t *testing.T, s format.Source) ([]string, *Result) {
	t.Helper()
	var out []string
	x, err := Run(context.Background(), &Options{Source: s, Key: []byte("k"), Now: fake.Now, Tell: func(r *Row) error {
		state := "-"
		if r.Alive {
			state = "+"
		}
		out = append(out, fmt.Sprintf("%s%s@%d %s", state, r.Key, r.Seq, r.Why))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out, x
}

func TestExplainVersions(t *testing.T) {
	got, x := explain(t, newExplained(
		e("m", "2 3 0", 30), e("m", "0 2 0", 20), e("m", "1 1 0", 10),
		e("d1", "3", 29), e("d1", "1", 9), e("d2", "delete", 28), e("d2", "2", 19), e("d3", "1", 8), e("d4", "4", 31),
		e("d5other", "3", 7),
	))
	want := []string{
		"+m@30 the record's meta row: never expires", "-m@20 superseded by sequence number 30", "-m@10 superseded by sequence number 30",
		"+d1@29 part of the record", "-d1@9 superseded by sequence number 29",
		"-d2@28 tombstone: hides older entries of this row", "-d2@19 deleted by the tombstone of sequence number 28",
		"-d3@8 stale: of version 1, the collection is at version 3", "-d4@31 version 4 is newer than the collection's, 3: no reader shows it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if x.Rows != 9 || x.Alive != 2 || len(x.States) != 1 || x.States[0].Version != 3 {
		t.Errorf("sum %+v", x)
	}
}

func TestExplainStates(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []store.Entry
		want    []string
		state   string
	}{
		{"orphan", []store.Entry{e("d1", "1", 1)}, []string{"-d1@1 orphan: there is no meta row"}, "gone"},
		{"deleted", []store.Entry{e("m", "0 2 0", 5), e("d1", "1", 1), e("d2", "2", 2)},
			[]string{"-m@5 deleted: the meta row's count is 0", "-d1@1 stale: of version 1, the collection is at version 2", "-d2@2 deleted: the meta row's count is 0"}, "deleted"},
		{"expired", []store.Entry{e("m", "1 1 1600000000", 5), e("d1", "1", 1)},
			[]string{"-m@5 expired at 2020-09-13T12:26:40Z", "-d1@1 expired at 2020-09-13T12:26:40Z"}, "deleted"},
		{"malformed", []store.Entry{e("m", "??", 5)}, []string{"-m@5 malformed: short"}, "deleted"},
		{"range tombstone", []store.Entry{e("m", "1 1 0", 5), e("d0", "range", 9), covered(e("d1", "1", 1))},
			[]string{"+m@5 the record's meta row: never expires", `-d0@9 range tombstone: deletes keys from "d0" up to "dz"`, "-d1@1 deleted by a newer range tombstone"}, "deleted"},
		{"operands", []store.Entry{e("m", "1 1 0", 5), e("d1", "merge", 9), e("d1", "merge", 8), e("d1", "1", 7), e("d1", "1", 6),
			e("d2", "merge", 9), e("d2", "delete", 8), e("d2", "1", 7)},
			[]string{"+m@5 the record's meta row: never expires",
				"+d1@9 merged with the other operands of this row; part of the record", "+d1@8 merged with the other operands of this row; part of the record",
				"+d1@7 merged with the other operands of this row; part of the record", "-d1@6 superseded by sequence number 7",
				"+d2@9 merged with the other operands of this row; part of the record", "-d2@8 tombstone: hides older entries of this row",
				"-d2@7 deleted by the tombstone of sequence number 8"}, "deleted"},
	} {
		got, x := explain(t, newExplained(c.entries...))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if len(x.States) != 1 || x.States[0].State != c.state {
			t.Errorf("%s: states %+v", c.name, x.States)
		}
	}
}

// newerAlive is a source in which rows newer than their meta row count.
type newerAlive struct{ *explained }

func (newerAlive) LiveVersion(meta, row int64) bool { return row >= meta }

func TestExplainAsksTheFormat(t *testing.T) {
	got, _ := explain(t, newerAlive{newExplained(e("m", "1 3 0", 5), e("d1", "4", 6))})
	if want := "+d1@6 part of the record"; got[1] != want {
		t.Errorf("got %q", got)
	}
}

// What readers make of the key is part of the explanation.
func TestExplainLive(t *testing.T) {
	s := newExplained(e("m", "1 1 0", 5), e("d1", "1", 6))
	r := fake.Rec(record.Hash, "k", fake.Pair("f", "v"), fake.Pair("g", "w"))
	r.DB = "0"
	s.Held["0"] = []fake.Record{fake.Rec(record.Hash, "j"), r}
	s.Fail = func(h *record.Header, env *format.Env) error {
		env.Report(record.Finding{Kind: "count-mismatch", Severity: record.Error, Key: slices.Clone(h.Key), Detail: "x"})
		return nil
	}
	_, x := explain(t, s)
	if len(x.States) != 1 || x.States[0].State != "alive" || x.States[0].Elements != 2 || x.States[0].Count != 1 || len(x.Findings) != 1 {
		t.Errorf("%+v", x)
	}
	s.DBs = []string{"0", "1"}
	n := 0
	_, err := Run(context.Background(), &Options{Source: s, Key: []byte("k"), Where: &filter.Filter{DBs: []string{"7"}}, Now: fake.Now,
		Tell: func(*Row) error { n++; return nil }})
	if err != nil || n != 0 {
		t.Errorf("of another database: %d rows, %v", n, err)
	}
}

// TestExplainManyFindings: of many findings the first are listed, the others counted, and none of them is no error.
func TestExplainManyFindings(t *testing.T) {
	s := fake.New(fake.Rec(record.Set, "k", fake.Member("a")))
	s.Fail = func(h *record.Header, env *format.Env) error {
		for i := range maxFindings + 3 {
			f := record.Finding{Kind: "zset-bad-score", Severity: record.Warning, Key: slices.Clone(h.Key)}
			if i > maxFindings {
				f.Severity = record.Error
			}
			env.Report(f)
		}
		env.Report(record.Finding{Kind: "count-mismatch", Severity: record.Error, Key: []byte("other")})
		return nil
	}
	x, err := Run(context.Background(), &Options{Source: s, Key: []byte("k"), Now: fake.Now, Tell: func(*Row) error { return nil }})
	if err != nil || len(x.Findings) != maxFindings || x.Omitted != 3 || x.Errors != 2 {
		t.Errorf("%d findings, %d omitted, %d errors, %v", len(x.Findings), x.Omitted, x.Errors, err)
	}
}
