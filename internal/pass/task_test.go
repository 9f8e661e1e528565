package pass

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// source has strings with the letters of list as keys.
type source struct {
	format.Source
	list  string
	spans []format.Span // it splits into
	err   error
}

func (s *source) Split(string, record.TypeSet, int) ([]format.Span, error) { return s.spans, s.err }

func (s *source) Records(_ context.Context, _ string, _ record.TypeSet, span format.Span, _ *format.Env) (record.Reader, error) {
	b := &record.Batch{}
	for _, c := range []byte(s.list) {
		if key := []byte{c}; span.Has(key) {
			b.Records = append(b.Records, record.Record{Header: record.Header{Type: record.String, Key: key},
				Class: record.Copied, First: len(b.Elems), N: 1, Rows: record.Rows{Meta: 1, Of: &record.Places{Meta: "kv"}}})
			b.Elems = append(b.Elems, record.Element{Value: key})
		}
	}
	return &once{b}, s.err
}

// once returns one batch.
type once struct{ b *record.Batch }

func (o *once) Next() (b *record.Batch, err error) {
	if b, o.b = o.b, nil; b == nil {
		return nil, io.EOF
	}
	return b, nil
}

func (o *once) Close() error { return nil }

// file has sections, too.
type file struct{ *source }

func (f file) Sections(string, record.TypeSet, int) ([]format.Span, error) {
	return []format.Span{{From: 1, To: 2}, {From: 2, To: 3}, {From: 3, To: 4}}, f.err
}

func TestTaskString(t *testing.T) {
	for want, p := range map[string]Task{
		"hash": {Types: record.Of(record.Hash)},
		`database 1, set, keys from "a", keys before "b"`: {DB: "1", Types: record.Of(record.Set), Span: format.Span{Lo: []byte("a"), Hi: []byte("b")}},
	} {
		if p.String() != want {
			t.Errorf("%s, want %s", p, want)
		}
	}
}

// TestTaskIsData checks that another process reads the task that one has written: a part of no keys is not one of all.
func TestTaskIsData(t *testing.T) {
	for _, spans := range [][]format.Span{nil, {}, {{Lo: []byte("a\xff")}}} {
		was := Task{N: 3, DB: "d\xff", TargetDB: "0", Types: record.Of(record.Set), Group: record.AllTypes,
			Span: format.Span{Lo: []byte{0}, Hi: []byte{1}}, Bytes: 9, Spans: spans}
		text, err := json.Marshal(was)
		var is Task
		if err = errors.Join(err, json.Unmarshal(text, &is)); err != nil || !reflect.DeepEqual(was, is) {
			t.Errorf("%s: %+v, %v", text, is, err)
		}
	}
}

// TestCut checks that the parts of a task cover it.
func TestCut(t *testing.T) {
	a, b := format.Span{Hi: []byte("m")}, format.Span{Lo: []byte("m")}
	bad := errors.New("bad")
	for _, c := range []struct {
		src   format.Source
		order bool
		n     int
		bytes int64
		err   error
	}{
		{&source{spans: []format.Span{a, b}}, false, 2, 50, nil}, {&source{spans: []format.Span{a, b}}, true, 2, 50, nil},
		{file{&source{spans: []format.Span{a, b}}}, false, 2, 50, nil}, {file{&source{spans: []format.Span{a, b}}}, true, 3, 33, nil},
		{&source{}, false, 1, 100, nil}, {&source{err: bad}, false, 0, 0, bad},
	} {
		tasks, err := Task{DB: "1", Bytes: 100}.Cut(c.src, 7, c.order)
		if len(tasks) != c.n || err != c.err {
			t.Fatalf("%d tasks, %v, want %d, %v", len(tasks), err, c.n, c.err)
		}
		for _, x := range tasks {
			if x.DB != "1" || x.Bytes != c.bytes || x.Span.IsSection() != (c.n == 3) {
				t.Errorf("%+v", x)
			}
		}
	}
}

// TestOpen checks which records a task has, in which order, and that the ledger has the rows of those left out.
func TestOpen(t *testing.T) {
	match := &filter.Selection{Filter: filter.Filter{Match: []string{"[a-y]"}}}
	for _, c := range []struct {
		task Task
		sort int64
		want string
		lost int64 // rows that are filtered and no longer among the records
	}{
		{Task{}, 0, "c z- b a", 0}, {Task{}, 1 << 20, "a b c", 1},
		{Task{Span: format.Span{Lo: []byte("b")}}, 0, "c z- b", 0},
		{Task{Spans: []format.Span{format.KeySpan([]byte("b")), format.KeySpan([]byte("z"))}}, 0, "b z-", 0},
		{Task{Spans: []format.Span{}}, 0, "", 0},
	} {
		var ledger record.Ledger
		o := &Opening{Source: &source{list: "czba"}, Selection: match, Sort: c.sort, Env: format.Env{Ledger: &ledger}}
		r, err := o.Open(context.Background(), &c.task)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for {
			b, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Records {
				got += " " + string(b.Records[i].Key)
				if b.Records[i].Out() {
					got += "-"
				}
			}
		}
		if err := r.Close(); err != nil || got != c.want && got != " "+c.want {
			t.Errorf("%+v: %s, want %s; %v", c.task, got, c.want, err)
		}
		if n := ledger.Snapshot()["kv"]; n.Rows[record.Filtered] != c.lost {
			t.Errorf("%+v: %+v, want %d rows", c.task, n, c.lost)
		}
	}
	bad := errors.New("bad")
	if _, err := (&Opening{Source: &source{err: bad}, Selection: match}).Open(context.Background(), &Task{}); err != bad {
		t.Error(err)
	}
}

// TestParts checks that the parts of a plan have each task once, in order, and about the same work.
func TestParts(t *testing.T) {
	var tasks []Task
	for n := range 100 {
		tasks = append(tasks, Task{N: n, Types: record.Of(record.Hash), Bytes: int64(n%7) << 40})
	}
	for _, list := range [][]Task{nil, tasks[:1], tasks[:3], tasks, make([]Task, 32)} {
		for _, n := range []int{1, 2, 7, 16, 150} {
			next := 0
			for k := 1; k <= n; k++ {
				own := Part{k, n}.Of(list)
				if len(own) > 0 && &own[0] != &list[next] {
					t.Fatalf("%d/%d of %d does not begin at task %d", k, n, len(list), next)
				}
				next += len(own)
				if n == 16 && len(list) == 100 && (len(own) < 4 || len(own) > 9) || n == 16 && len(list) == 32 && len(own) != 2 {
					t.Errorf("%d/%d has %d of %d tasks", k, n, len(own), len(list))
				}
			}
			if next != len(list) {
				t.Errorf("%d parts have %d of %d tasks", n, next, len(list))
			}
		}
	}
	if got := (Part{}).Of(tasks); len(got) != len(tasks) {
		t.Errorf("no part: %d tasks", len(got))
	}
}

func TestParsePart(t *testing.T) {
	for _, text := range []string{"1/1", "3/16", "10000/10000"} {
		if p, err := ParsePart(text); err != nil || p.String() != text {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "3", "/", "0/4", "5/4", "-1/4", "1/0", "01/4", "+1/4", "1/4/2", "1/10001", "a/b"} {
		if p, err := ParsePart(text); err == nil || p != (Part{}) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}
