package inspect

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kvferry/format"
	"kvferry/inspect/internal/fake"
	"kvferry/record"
)

func scanOf(s *fake.Source) *Scan { return &Scan{Source: s, Now: fake.Now} }

// keysOf reads what a scan selects: key and type, and the number of elements.
func keysOf(t *testing.T, s *Scan) []string {
	t.Helper()
	parts, err := s.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range parts {
		v := &listVisitor{}
		if err := s.Visit(context.Background(), p, v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v.keys...)
	}
	return out
}

type listVisitor struct {
	keys []string
	cur  []byte
}

func (v *listVisitor) Record(h *record.Header, e *Elements) error {
	v.cur = append(append(v.cur[:0], h.Key...), ':')
	batch, err := e.Next()
	for ; len(batch) > 0; batch, err = e.Next() {
		for _, e := range batch {
			v.cur = append(append(append(v.cur, ' '), e.Name...), e.Value...)
		}
	}
	v.keys = append(v.keys, string(v.cur))
	return err
}

func (v *listVisitor) Strings(batch []record.StringRecord) {
	for _, s := range batch {
		v.keys = append(v.keys, fmt.Sprintf("%s: %s", s.Key, s.Value))
	}
}

func (v *listVisitor) Merge() {}

// With any number of workers and spans, the same is found.
func TestScanWorkers(t *testing.T) {
	var all []fake.Record
	for i := range 200 {
		all = append(all, fake.Rec(record.Set, fmt.Sprintf("k%03d", i), fake.Member("x")), fake.Rec(record.List, fmt.Sprintf("k%03d", i), fake.Value("y")))
	}
	src := fake.New(all...)
	src.Bytes = 5 * spanBytes
	src.Spans = []format.Span{{Hi: []byte("k050")}, {Lo: []byte("k050"), Hi: []byte("k120")}, {Lo: []byte("k120")}}
	var want *record.Fingerprint
	for _, workers := range []int{0, 1, 3, 50} {
		s := scanOf(src)
		s.Workers = workers
		f, err := Fingerprint(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = f
		}
		if diff := want.Diff(f, false); diff != nil {
			t.Errorf("%d workers: %v differ", workers, diff)
		}
	}
	if n := want.Parts()[record.Part{DB: "0", Type: record.Set}].Records; n != 200 {
		t.Errorf("%d sets", n)
	}
	boom := errors.New("boom")
	src.Fail = func(h *record.Header, _ *format.Env) error {
		if string(h.Key) == "k130" {
			return boom
		}
		return nil
	}
	s := scanOf(src)
	s.Workers = 4
	if _, err := Fingerprint(context.Background(), s); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

// Types that share a keyspace are read together, others apart.
func TestGroups(t *testing.T) {
	src := &whereSource{Source: fake.New()}
	for _, c := range []struct {
		ranges []format.Range
		want   string
	}{
		{nil, "[string hash list set zset stream other]"},
		{[]format.Range{{Keyspace: "a"}}, "[string,hash,list,set,zset,stream,other]"},
		{[]format.Range{{Keyspace: "a", Type: record.Hash}, {Keyspace: "a", Type: record.Set}, {Keyspace: "b", Type: record.Set},
			{Keyspace: "b", Type: record.Stream}, {Keyspace: "c", Type: record.List}}, "[string hash,set,stream list zset other]"},
	} {
		src.ranges = c.ranges
		if got := fmt.Sprint(format.Together(src, "0", record.AllTypes)); got != c.want {
			t.Errorf("%v: %s, want %s", c.ranges, got, c.want)
		}
	}
	if format.Together(src, "0", 0) != nil {
		t.Error("no types, and yet a group")
	}
}

type whereSource struct {
	*fake.Source
	ranges []format.Range
}

func (s *whereSource) Where(string, []byte) []format.Range { return s.ranges }
