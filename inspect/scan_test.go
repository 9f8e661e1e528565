package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

func scanOf(s *fake.Source) *Scan { return &Scan{Source: s, Now: fake.Now} }

// keysOf returns the records that a scan selects: key, type and number of elements.
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

func (v *listVisitor) Batch(b *record.Batch) {
	for i := range b.Records {
		r := &b.Records[i]
		if r.Out() {
			continue
		}
		if b.Begins(i) {
			v.cur = append(append(v.cur[:0], r.Key...), ':')
		}
		for _, e := range b.Of(i) {
			v.cur = append(append(append(v.cur, ' '), e.Name...), e.Value...)
		}
		if b.Ends(i) {
			v.keys = append(v.keys, string(v.cur))
		}
	}
}

func (v *listVisitor) Merge() {}

// TestScanWorkers checks that the result does not depend on the number of workers and spans.
func TestScanWorkers(t *testing.T) {
	var all []fake.Record
	for i := range 200 {
		all = append(all, fake.Rec(record.Set, fmt.Sprintf("k%03d", i), fake.Member("x")),
			fake.Rec(record.List, fmt.Sprintf("k%03d", i), fake.Value("y")))
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

// TestGroups checks that types that share a keyspace are read together and others separately.
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

// sectioned is a source that is a file.
type sectioned struct{ *fake.Source }

func (s sectioned) Sections(string, record.TypeSet, int) ([]format.Span, error) {
	return []format.Span{{To: 100}}, nil
}

// in returns the keys of a reader and the names of their elements.
func in(t *testing.T, r record.Reader, err error) (out []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	w, batch := record.Walk(r), make([]record.Element, 2)
	for {
		h, err := w.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %s:", h.Type, h.Key)
		for err == nil {
			var n int
			n, err = w.Read(batch)
			for i := range batch[:n] {
				line += " " + string(batch[i].Name)
			}
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOrdered checks that records come by key and elements by name, unless the source is a file or the order was not
// requested.
func TestOrdered(t *testing.T) {
	hash := fake.Rec(record.Hash, "b", fake.Pair("y", ""), fake.Pair("x", ""))
	set := fake.Rec(record.Set, "a", fake.Member("2"), fake.Member("1"))
	src := fake.New(hash, set)
	src.Held["0"] = []fake.Record{hash.In("0"), set.In("0")}
	src.Unsorted = true
	s := scanOf(src)
	s.TempDir = t.TempDir()
	r, err := s.Ordered(context.Background(), "0")
	if got := in(t, r, err); !slices.Equal(got, []string{"set a: 1 2", "hash b: x y"}) {
		t.Errorf("by name: %q", got)
	}
	r, err = s.OrderedKeys(context.Background(), "0")
	if got := in(t, r, err); !slices.Equal(got, []string{"set a: 2 1", "hash b: y x"}) {
		t.Errorf("by key: %q", got)
	}
	src.Unsorted = false
	s.Source = sectioned{src}
	r, err = s.Ordered(context.Background(), "0")
	if got := in(t, r, err); !slices.Equal(got, []string{"hash b: y x", "set a: 2 1"}) {
		t.Errorf("of a file: %q", got)
	}
	s.Selection = &filter.Selection{Filter: filter.Filter{Types: record.Of(record.Set)}}
	r, err = s.Ordered(context.Background(), "0")
	if got := in(t, r, err); len(got) != 1 {
		t.Errorf("of a selection: %q", got)
	}
	src.Only = record.Of(record.Hash)
	r, err = s.Ordered(context.Background(), "0")
	if got := in(t, r, err); got != nil {
		t.Errorf("of a type that is not there: %q", got)
	}
}

// counting counts elements and skipped records.
type counting struct{ records, elements, skipped int }

func (c *counting) Batch(b *record.Batch) {
	for i := range b.Records {
		if b.Records[i].Out() {
			continue
		}
		c.elements += b.Records[i].N
		if b.Ends(i) {
			c.records++
		}
	}
}
func (c *counting) Skip(_ *record.Header, _ record.Class) { c.skipped++ }
func (c *counting) Merge()                                {}

// TestVisit checks that strings that come whole have the same fingerprint.
func TestVisit(t *testing.T) {
	many := make([]record.Element, 3*record.BatchLen)
	for i := range many {
		many[i] = fake.Member(fmt.Sprint(i))
	}
	src := fake.New(fake.Rec(record.String, "a", fake.Value("1")), fake.Rec(record.String, "b", fake.Value("2")),
		fake.Rec(record.String, "c", fake.Value("3")).Expires(1), fake.Rec(record.Set, "s", many...))
	var want *record.Fingerprint
	for _, whole := range []bool{false, true} {
		src.Whole = whole
		s := scanOf(src)
		s.Workers = 2
		f, err := Fingerprint(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = f
		}
		if diff := want.Diff(f, false); diff != nil {
			t.Errorf("whole %v: %v differ", whole, diff)
		}
		var c counting
		s.Workers = 1 // one visitor gets all parts
		if _, err := s.Run(context.Background(), func(Part) Visitor { return &c }); err != nil {
			t.Fatal(err)
		}
		if c.records != 3 || c.skipped != 1 || c.elements != len(many)+2 {
			t.Errorf("whole %v: %+v", whole, c)
		}
	}
	s := scanOf(src)
	s.Selection = &filter.Selection{Filter: filter.Filter{DBs: []string{"9"}}}
	var none *filter.NoDatabaseError
	if _, err := s.Run(context.Background(), func(Part) Visitor { return &counting{} }); !errors.As(err, &none) {
		t.Errorf("of a database that is not there: %v", err)
	}
}

// TestVisitCancelled checks that a cancelled scan stops promptly, between records and within one.
func TestVisitCancelled(t *testing.T) {
	many := make([]record.Element, 4*record.CheckEvery)
	var all []fake.Record
	for i := range many {
		many[i] = fake.Member(fmt.Sprint(i))
		all = append(all, fake.Rec(record.Set, fmt.Sprintf("k%04d", i), fake.Member("m")))
	}
	for name, src := range map[string]*fake.Source{"records": fake.New(all...),
		"elements": fake.New(fake.Rec(record.Set, "s", many...))} {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		src.Fail = func(*record.Header, *format.Env) error {
			if n++; n == 1 {
				cancel()
			}
			return nil
		}
		s := scanOf(src)
		err := s.Visit(ctx, Part{DB: "0", Types: record.AllTypes}, &counting{})
		if !errors.Is(err, context.Canceled) || n > record.CheckEvery {
			t.Errorf("%s: %v after %d", name, err, n)
		}
	}
}

// TestScanSeeks checks that a scan opens only the spans of the keys that can pass, or those and the keys between them.
func TestScanSeeks(t *testing.T) {
	src := &opening{Source: fake.New(fake.Rec(record.String, "a", fake.Value("1")), fake.Rec(record.String, "b", fake.Value("2")),
		fake.Rec(record.String, "c", fake.Value("3")))}
	src.Only = record.Of(record.String)
	many := []string{"a", "c"}
	for i := range fewKeys {
		many = append(many, fmt.Sprintf("x%02d", i))
	}
	for _, c := range []struct {
		match []string
		bytes int64
		keys  int
		spans string
	}{
		{[]string{"*"}, 1 << 20, 3, `[""-""]`},
		{[]string{"b"}, 1 << 20, 1, `["b"-"b\x00"]`},
		{[]string{"b*", "x"}, 1 << 20, 1, `["b"-"c" "x"-"x\x00"]`},
		{[]string{"a", "c"}, 1000, 2, `["a"-"a\x00" "c"-"c\x00"]`}, // so few that the size is not asked for
		{many, 1000, 2, `["a"-"x63\x00"]`},
	} {
		src.spans, src.Bytes = nil, c.bytes
		s := &Scan{Source: src, Now: fake.Now, Selection: &filter.Selection{Filter: filter.Filter{Match: c.match}}}
		keys := keysOf(t, s)
		if got := fmt.Sprint(src.spans); len(keys) != c.keys || got != c.spans || s.Seeks() != (c.keys < 3) {
			t.Errorf("%s: %q by spans %s, want %s", c.match, keys, got, c.spans)
		}
	}
}

// opening notes the spans that are opened.
type opening struct {
	*fake.Source
	spans []string
}

func (o *opening) Records(ctx context.Context, db string, types record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {
	o.spans = append(o.spans, fmt.Sprintf("%q-%q", span.Lo, span.Hi))
	return o.Source.Records(ctx, db, types, span, e)
}
