package inspect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/record"
)

// now is the clock of tests.
var now = time.Unix(1700000000, 0)

// fakeFormat is a format without a layout.
type fakeFormat struct{ seconds bool }

func (fakeFormat) Name() string                           { return "fake" }
func (fakeFormat) Detect(*format.Evidence) format.Verdict { return format.Verdict{} }
func (f fakeFormat) Limits() format.Limits                { return format.Limits{Seconds: f.seconds} }
func (fakeFormat) Open(context.Context, string, *format.OpenOptions) (format.Source, error) {
	return nil, nil
}
func (fakeFormat) Create(context.Context, string, *format.CreateOptions) (format.Target, error) {
	return nil, nil
}

// fakeRecord is a record in memory.
type fakeRecord struct {
	record.Header
	elems []record.Element
}

// fakeSource is a dataset in memory. Its records must be in order when it says that they are.
type fakeSource struct {
	format   fakeFormat
	dbs      []string
	records  map[string][]fakeRecord
	unsorted bool
	// fail is called before each record; an error ends the pass.
	fail func(h *record.Header, e *format.Env) error
	// failInside is called before all elements of a record but the first ones; an error ends the pass.
	failInside func(h *record.Header) error
	// size is what Size answers.
	size      int64
	keyspaces []format.Keyspace
	split     []format.Span
}

func newFake(records ...fakeRecord) *fakeSource {
	s := &fakeSource{dbs: []string{"0"}, records: make(map[string][]fakeRecord)}
	for _, r := range records {
		r.DB = "0"
		r.Expired = r.ExpireMS != 0 && r.ExpireMS < now.UnixMilli()
		s.records["0"] = append(s.records["0"], r)
	}
	slices.SortStableFunc(s.records["0"], func(a, b fakeRecord) int { return record.Compare(&a.Header, &b.Header) })
	return s
}

func (s *fakeSource) Format() format.Format                        { return s.format }
func (s *fakeSource) Layout() format.Layout                        { return format.LayoutFlat }
func (s *fakeSource) Databases() []string                          { return s.dbs }
func (s *fakeSource) Sorted() bool                                 { return !s.unsorted }
func (s *fakeSource) Types(string) record.TypeSet                  { return record.AllTypes }
func (s *fakeSource) Size(string, record.TypeSet) int64            { return s.size }
func (s *fakeSource) Where(string, []byte) []format.Range          { return nil }
func (s *fakeSource) Keyspaces() []format.Keyspace                 { return s.keyspaces }
func (s *fakeSource) Extra() []string                              { return nil }
func (s *fakeSource) Close() error                                 { return nil }
func (s *fakeSource) Describe(_, _ string, _, _ []byte) format.Row { return format.Row{} }

func (s *fakeSource) Split(_ string, _ record.TypeSet, n int) ([]format.Span, error) {
	if n > 1 && s.split != nil {
		return s.split, nil
	}
	return []format.Span{{}}, nil
}

func (s *fakeSource) Records(_ context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	r := &fakeReader{s: s, env: e}
	for _, rec := range s.records[db] {
		if t.Has(rec.Type) && bytes.Compare(rec.Key, span.Lo) >= 0 && (span.Hi == nil || bytes.Compare(rec.Key, span.Hi) < 0) {
			r.left = append(r.left, rec)
		}
	}
	return r, nil
}

// fakeReader overwrites what its views pointed to as soon as it may.
type fakeReader struct {
	s       *fakeSource
	env     *format.Env
	left    []fakeRecord
	cur     fakeRecord
	header  record.Header
	key     []byte
	scratch []byte
	class   record.Class
	tally   record.Tally
	begun   bool
	inside  bool // elements of the record were read
}

func (r *fakeReader) settle() {
	if r.begun {
		r.tally.Rows[r.class]++
		r.tally.Visible++
		r.tally.Entries++
	}
}

func (r *fakeReader) Next() (*record.Header, error) {
	r.settle()
	r.begun = false
	if len(r.left) == 0 {
		return nil, io.EOF
	}
	r.cur, r.left = r.left[0], r.left[1:]
	if r.s.fail != nil {
		if err := r.s.fail(&r.cur.Header, r.env); err != nil {
			return nil, err
		}
	}
	wipe(r.key)
	r.key = append(r.key[:0], r.cur.Key...)
	r.header = r.cur.Header
	r.header.Key = r.key
	r.class, r.begun, r.inside = record.Copied, true, false
	return &r.header, nil
}

func wipe(b []byte) {
	for i := range b {
		b[i] = 0xEE
	}
}

func (r *fakeReader) Read(dst []record.Element) (int, error) {
	wipe(r.scratch)
	r.scratch = r.scratch[:0]
	if len(r.cur.elems) == 0 {
		return 0, io.EOF
	}
	if r.inside && r.s.failInside != nil {
		if err := r.s.failInside(&r.header); err != nil {
			return 0, err
		}
	}
	r.inside = true
	n := min(3, len(dst), len(r.cur.elems))
	size := 0
	for _, e := range r.cur.elems[:n] {
		size += len(e.Name) + len(e.Value)
	}
	r.scratch = slices.Grow(r.scratch, size)
	for i, e := range r.cur.elems[:n] {
		dst[i] = record.Element{Name: r.view(e.Name), Value: r.view(e.Value), Score: e.Score}
	}
	r.cur.elems = r.cur.elems[n:]
	return n, nil
}

func (r *fakeReader) view(b []byte) []byte {
	at := len(r.scratch)
	r.scratch = append(r.scratch, b...)
	return r.scratch[at:len(r.scratch):len(r.scratch)]
}

func (r *fakeReader) Settle(c record.Class) { r.class = c }

func (r *fakeReader) Close() error {
	r.settle()
	r.env.Ledger.Add("fake", &r.tally)
	return nil
}

func rec(t record.Type, key string, elems ...record.Element) fakeRecord {
	return fakeRecord{record.Header{Type: t, Key: []byte(key), Len: int64(len(elems))}, elems}
}

// byName says that the elements are in order of their names.
func (r fakeRecord) byName() fakeRecord {
	r.ByName = true
	return r
}

func (r fakeRecord) expires(ms int64) fakeRecord {
	r.ExpireMS = ms
	return r
}

func (r fakeRecord) in(db string) fakeRecord {
	r.DB = db
	return r
}

func value(v string) record.Element      { return record.Element{Value: []byte(v)} }
func pair(name, v string) record.Element { return record.Element{Name: []byte(name), Value: []byte(v)} }
func member(name string) record.Element  { return record.Element{Name: []byte(name)} }
func scored(name string, f float64) record.Element {
	return record.Element{Name: []byte(name), Score: f}
}

func scanOf(s *fakeSource) *Scan { return &Scan{Source: s, Now: now} }

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
