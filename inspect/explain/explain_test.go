package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// explained is a source with one keyspace. Its rows are "meta <count> <version> <expiry in seconds>" at keys m…, and
// "row <version>" at keys d….
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

// Rows returns the newest entry of each key unless it is deleted.
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

// e makes an entry from its key, its kind or value, and its sequence number.
func e(key, what string, seq uint64) store.Entry {
	out := store.Entry{Key: []byte(key), Seq: seq}
	switch what {
	case "delete":
		out.Kind = store.Delete
	case "merge":
		out.Kind, out.Value = store.Merge, []byte("1")
	case "lost":
		out.Kind = store.Lost
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
		"-d3@8 stale: of version 1, the collection is at version 3", "-d4@31 version 4 is newer than the collection's, 3: clients do not see it",
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

// newerAlive is a source in which rows with a newer version than the meta row are live.
type newerAlive struct{ *explained }

func (newerAlive) LiveVersion(meta, row int64) bool { return row >= meta }

func TestExplainAsksTheFormat(t *testing.T) {
	got, _ := explain(t, newerAlive{newExplained(e("m", "1 3 0", 5), e("d1", "4", 6))})
	if want := "+d1@6 part of the record"; got[1] != want {
		t.Errorf("got %q", got)
	}
}

// TestExplainLive checks that a live record's state and the findings of readers about the key are reported.
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
	if len(x.States) != 1 || x.States[0].State != "alive" || x.States[0].Elements != 2 || x.States[0].Count != 1 ||
		len(x.Findings) != 1 {
		t.Errorf("%+v", x)
	}
	s.DBs = []string{"0", "1"}
	n := 0
	_, err := Run(context.Background(), &Options{Source: s, Key: []byte("k"), Where: &filter.Filter{DBs: []string{"7"}},
		Now:  fake.Now,
		Tell: func(*Row) error { n++; return nil }})
	if err != nil || n != 0 {
		t.Errorf("of another database: %d rows, %v", n, err)
	}
}

// TestExplainManyFindings checks that the first findings are listed and the rest counted, and that errors count even
// if they are not listed.
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
	x, err := Run(context.Background(), &Options{Source: s, Key: []byte("k"), Now: fake.Now, Tell: func(*Row) error {
		return nil
	}})
	if err != nil || len(x.Findings) != maxFindings || x.Omitted != 3 || x.Errors != 2 {
		t.Errorf("%d findings, %d omitted, %d errors, %v", len(x.Findings), x.Omitted, x.Errors, err)
	}
}

// TestExplainLost checks that a value that cannot be read is not a row, but hides older ones.
func TestExplainLost(t *testing.T) {
	got, x := explain(t, newExplained(e("m", "1 1 2000000000", 5), e("d1", "lost", 9), e("d1", "1", 8),
		e("d2", "merge", 9), e("d2", "lost", 8), e("d2", "1", 7), covered(e("d3", "1", 3))))
	const lost = "lost: its value in a blob file cannot be read"
	want := []string{"+m@5 the record's meta row: expires at 2033-05-18T03:33:20Z", "-d1@9 " + lost, "-d1@8 superseded by sequence number 9",
		"+d2@9 merged with the other operands of this row; part of the record", "-d2@8 " + lost, "-d2@7 superseded by sequence number 8",
		"-d3@3 deleted by a newer range tombstone"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if x.Rows != 7 || x.Alive != 2 || x.Dead == 0 || x.Bytes <= x.Dead {
		t.Errorf("sum %+v", x)
	}
}

// oneOrder is a format that keeps all types in one order. The type is in the meta row.
type oneOrder struct{ *explained }

func (s oneOrder) Where(string, []byte) []format.Range {
	return []format.Range{{Keyspace: "x", Lo: []byte("m"), Hi: []byte("n")},
		{Keyspace: "x", Type: record.Hash, Lo: []byte("d"), Hi: []byte("e")},
		{Keyspace: "x", Type: record.Set, Lo: []byte("f"), Hi: []byte("g")}}
}

func (s oneOrder) Describe(db, keyspace string, key, value []byte) format.Row {
	row := s.explained.Describe(db, keyspace, key, value)
	row.Fields = []format.Field{{Where: "key"}, {Where: "value"}}
	if key[0] == 'f' {
		row.Type = record.Set
	}
	return row
}

// TestExplainOneOrder checks that rows of other types are stale if a single meta row decides about all types.
func TestExplainOneOrder(t *testing.T) {
	src := oneOrder{newExplained(e("m", "1 1 0", 5), e("d1", "1", 6), e("f1", "1", 3), e("f2", "delete", 4))}
	got, x := explain(t, src)
	want := []string{"+m@5 the record's meta row: never expires", "+d1@6 part of the record", "-f1@3 stale: of a set, the key is a hash now",
		"-f2@4 tombstone: hides older entries of this row"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if len(x.States) != 2 || x.States[0].State != "deleted" || x.States[1].Type != record.Set || x.States[1].State != "gone" {
		t.Errorf("states %+v", x.States)
	}
	r := fake.Rec(record.Hash, "k", fake.Pair("f", "v")).In("0")
	src.Held["0"] = []fake.Record{r}
	if _, x := explain(t, src); len(x.States) != 2 || x.States[0].State != "alive" || x.States[0].Version != 1 ||
		x.States[1].State != "gone" {
		t.Errorf("with a record: %+v", x.States)
	}
	n := 0
	x, err := Run(context.Background(), &Options{Source: src, Key: []byte("k"),
		Where: &filter.Filter{Types: record.Of(record.Set)}, Now: fake.Now,
		Tell: func(*Row) error { n++; return nil }})
	if err != nil || n != 2 || len(x.States) != 1 || x.States[0].Type != record.Set {
		t.Errorf("of sets: %d rows, %+v, %v", n, x, err)
	}
	src.Only = record.Of(record.Hash)
	if _, err := Run(context.Background(), &Options{Source: src, Key: []byte("k"),
		Where: &filter.Filter{Types: record.Of(record.Set)}, Now: fake.Now,
		Tell: func(*Row) error { return nil }}); err != nil {
		t.Errorf("of a type that is not there: %v", err)
	}
}

// TestExplainExpired checks that the record decides about expiry, or the meta row in the format's unit if no record
// was read.
func TestExplainExpired(t *testing.T) {
	seconds := fake.Now.Unix()
	src := newExplained(e("m", fmt.Sprintf("1 1 %d", seconds), 5))
	for _, c := range []struct {
		now   time.Time
		whole bool
		alive bool
	}{
		{fake.Now, false, true}, {fake.Now.Add(time.Millisecond), false, false}, {fake.Now.Add(time.Millisecond), true, true}, {fake.Now.Add(time.Second), true, false},
	} {
		src.Of.Bounds.Seconds = c.whole
		x, err := Run(context.Background(), &Options{Source: src, Key: []byte("k"), Now: c.now, Tell: func(*Row) error {
			return nil
		}})
		if err != nil || (x.Alive == 1) != c.alive {
			t.Errorf("%+v: %+v, %v", c, x, err)
		}
	}
	r := fake.Rec(record.Hash, "k", fake.Pair("f", "v")).Expires(1).In("0")
	src.Held["0"] = []fake.Record{r}
	if _, x := explain(t, src); x.States[0].State != "expired" || x.Alive != 0 {
		t.Errorf("a record that expired: %+v", x)
	}
}

// badSpace is a keyspace that fails at one of its calls.
type badSpace struct {
	*entrySpace
	rows, entries, next error
}

func (k *badSpace) Rows(lo, hi []byte) (store.Iterator, error) {
	if k.rows != nil {
		return nil, k.rows
	}
	return k.entrySpace.Rows(lo, hi)
}

func (k *badSpace) Entries(lo, hi []byte) (store.EntryIterator, error) {
	if k.next != nil {
		return &badEntries{err: k.next}, k.entries
	}
	return &entryList{}, k.entries
}

type badEntries struct {
	entryList
	err error
}

func (l *badEntries) Next() (*store.Entry, error) { return nil, l.err }

// TestExplainFails checks that a read error ends an explanation.
func TestExplainFails(t *testing.T) {
	boom := errors.New("boom")
	run := func(s format.Source, tell error) error {
		_, err := Run(context.Background(), &Options{Source: s, Key: []byte("k"), Now: fake.Now, Tell: func(*Row) error {
			return tell
		}})
		return err
	}
	for _, bad := range []badSpace{{rows: boom}, {entries: boom}, {next: boom}} {
		s := newExplained(e("m", "1 1 0", 5))
		bad.entrySpace = s.space
		s.Spaces[0].Keyspace = &bad
		if err := run(s, nil); !errors.Is(err, boom) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	s := newExplained(e("m", "1 1 0", 5))
	if err := run(s, boom); !errors.Is(err, boom) {
		t.Errorf("nobody listens: %v", err)
	}
	s.Fail = func(*record.Header, *format.Env) error { return boom }
	s.Held["0"] = []fake.Record{fake.Rec(record.Hash, "k", fake.Pair("f", "v")).In("0")}
	if err := run(s, nil); !errors.Is(err, boom) {
		t.Errorf("its record: %v", err)
	}
	s.Spaces[0].Name = "other"
	s.Fail = nil
	if err := run(s, nil); err == nil || err.Error() != `no keyspace "x" in database 0` {
		t.Errorf("no keyspace: %v", err)
	}
	many := make([]store.Entry, 2*record.CheckEvery)
	for i := range many {
		many[i] = e("d1", "1", uint64(len(many)-i))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := Run(ctx, &Options{Source: newExplained(many...), Key: []byte("k"), Now: fake.Now, Tell: func(*Row) error {
		cancel()
		return nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
