// Package fake is an in-memory format for tests of packages that read datasets. It fails on demand.
package fake

import (
	"bytes"
	"context"
	"io"
	"slices"
	"time"

	"kvferry/format"
	"kvferry/record"
)

// Now is the clock of tests.
var Now = time.Unix(1700000000, 0)

// Format is a format without a layout.
type Format struct{ Bounds format.Limits }

func (Format) Name() string                           { return "fake" }
func (Format) Detect(*format.Evidence) format.Verdict { return format.Verdict{} }
func (f Format) Limits() format.Limits                { return f.Bounds }
func (Format) Open(context.Context, string, *format.OpenOptions) (format.Source, error) {
	return nil, nil
}
func (Format) Create(context.Context, string, *format.CreateOptions) (format.Target, error) {
	return nil, nil
}

// Source is a dataset in memory. Unless Unsorted is set, its records must be in order.
type Source struct {
	Of       Format
	DBs      []string
	Held     map[string][]Record // by database
	Only     record.TypeSet      // result of Types; 0 means all types
	Unsorted bool
	Whole    bool // readers implement record.StringReader
	// Fail is called before each record; an error ends the pass.
	Fail func(h *record.Header, e *format.Env) error
	// FailInside is called before each batch of a record's elements except the first; an error ends the pass.
	FailInside func(h *record.Header) error
	// Bytes, Spaces and Spans are the results of Size, Keyspaces and Split.
	Bytes  int64
	Spaces []format.Keyspace
	Spans  []format.Span
}

// New returns a dataset of one database, 0, with these records.
func New(records ...Record) *Source {
	s := &Source{DBs: []string{"0"}, Held: make(map[string][]Record)}
	for _, r := range records {
		r.DB = "0"
		r.Expired = r.ExpireMS != 0 && r.ExpireMS < Now.UnixMilli()
		s.Held["0"] = append(s.Held["0"], r)
	}
	slices.SortStableFunc(s.Held["0"], func(a, b Record) int { return record.Compare(&a.Header, &b.Header) })
	return s
}

func (s *Source) Format() format.Format                        { return s.Of }
func (s *Source) Layout() format.Layout                        { return format.LayoutFlat }
func (s *Source) Databases() []string                          { return s.DBs }
func (s *Source) Sorted() bool                                 { return !s.Unsorted }
func (s *Source) Size(string, record.TypeSet) int64            { return s.Bytes }
func (s *Source) Where(string, []byte) []format.Range          { return nil }
func (s *Source) Keyspaces() []format.Keyspace                 { return s.Spaces }
func (s *Source) Extra() []string                              { return nil }
func (s *Source) Close() error                                 { return nil }
func (s *Source) Describe(_, _ string, _, _ []byte) format.Row { return format.Row{} }

func (s *Source) Types(string) record.TypeSet {
	if s.Only != 0 {
		return s.Only
	}
	return record.AllTypes
}

func (s *Source) Split(_ string, _ record.TypeSet, n int) ([]format.Span, error) {
	if n > 1 && s.Spans != nil {
		return s.Spans, nil
	}
	return []format.Span{{}}, nil
}

func (s *Source) Records(_ context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	r := &reader{s: s, env: e}
	for _, rec := range s.Held[db] {
		if t.Has(rec.Type) && bytes.Compare(rec.Key, span.Lo) >= 0 && (span.Hi == nil || bytes.Compare(rec.Key, span.Hi) < 0) {
			r.left = append(r.left, rec)
		}
	}
	if s.Whole {
		return record.Gather(r, r.strings), nil
	}
	return record.Gather(r, nil), nil
}

// reader overwrites the memory of its views as soon as they expire, to expose callers that keep them.
type reader struct {
	s       *Source
	env     *format.Env
	left    []Record
	cur     Record
	header  record.Header
	key     []byte
	scratch []byte
	tally   record.Tally
	inside  bool // some elements of the record were read
}

func (r *reader) count() {
	r.tally.Visible++
	r.tally.Entries++
}

// places is the keyspace of all records.
var places = &record.Places{Meta: "fake"}

func (r *reader) End(rec *record.Record) error {
	rec.Rows = record.Rows{Of: places, Meta: 1}
	return nil
}

func (r *reader) Heavy() bool { return false }

func (r *reader) Next() (*record.Header, error) {
	if len(r.left) == 0 {
		return nil, io.EOF
	}
	r.cur, r.left = r.left[0], r.left[1:]
	if r.s.Fail != nil {
		if err := r.s.Fail(&r.cur.Header, r.env); err != nil {
			return nil, err
		}
	}
	wipe(r.key)
	r.key = append(r.key[:0], r.cur.Key...)
	r.header = r.cur.Header
	r.header.Key = r.key
	r.inside = false
	r.count()
	return &r.header, nil
}

func wipe(b []byte) {
	for i := range b {
		b[i] = 0xEE
	}
}

func (r *reader) Read(dst []record.Element) (int, error) {
	wipe(r.scratch)
	r.scratch = r.scratch[:0]
	if len(r.cur.Elems) == 0 {
		return 0, io.EOF
	}
	if r.inside && r.s.FailInside != nil {
		if err := r.s.FailInside(&r.header); err != nil {
			return 0, err
		}
	}
	r.inside = true
	n := min(3, len(dst), len(r.cur.Elems))
	size := 0
	for _, e := range r.cur.Elems[:n] {
		size += len(e.Name) + len(e.Value)
	}
	r.scratch = slices.Grow(r.scratch, size)
	for i, e := range r.cur.Elems[:n] {
		dst[i] = record.Element{Name: r.view(e.Name), Value: r.view(e.Value), Score: e.Score}
	}
	r.cur.Elems = r.cur.Elems[n:]
	return n, nil
}

func (r *reader) view(b []byte) []byte {
	at := len(r.scratch)
	r.scratch = append(r.scratch, b...)
	return r.scratch[at:len(r.scratch):len(r.scratch)]
}

func (r *reader) Close() error {
	r.env.Ledger.Add("fake", &r.tally)
	return nil
}

// strings fills a batch with up to three strings.
func (r *reader) strings(b *record.Batch) error {
	for len(r.left) > 0 && len(b.Records) < 3 && r.left[0].Type == record.String {
		c := r.left[0]
		r.left = r.left[1:]
		r.count()
		h := record.Header{DB: c.DB, Type: record.String, Key: bytes.Clone(c.Key), ExpireMS: c.ExpireMS, Expired: c.Expired, Len: 1}
		rec := record.Record{Header: h, First: len(b.Elems), N: 1, Class: record.Copied}
		_ = r.End(&rec)
		b.Records, b.Elems = append(b.Records, rec), append(b.Elems, record.Element{Value: bytes.Clone(c.Elems[0].Value)})
	}
	return nil
}
