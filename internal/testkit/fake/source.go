package fake

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// Source is a dataset in memory.
type Source struct {
	Of   *Format
	DBs  []string            // nil: those of Held
	Held map[string][]Record // by database, in (key, type) order unless Unsorted is set
	Only record.TypeSet      // result of Types; 0: the types of the records

	Laid     format.Layout
	Unsorted bool
	Reversed bool           // readers go backwards
	Resort   bool           // of the options
	Disorder record.TypeSet // types whose records fail with an OrderError unless Resort is set
	Whole    bool           // readers batch strings
	Step     int            // elements of a batch; 0: all
	Space    string         // the keyspace of all records, a row each; "": DB/rows, with rows of elements

	// Bytes, Spaces, Spans, Files and Ranges are the results of Size, Keyspaces, Split, Extra and Where. Weight is the
	// size of a record, in addition to Bytes; without Spans the records are cut into equal parts.
	Bytes, Weight int64
	Spaces        []format.Keyspace
	Spans         []format.Span
	Files         []string
	Ranges        []format.Range

	Findings []record.Finding // reported by readers of their types
	ReadErr  error            // follows the last record
	// Fail is called before each record, FailInside before each batch of its elements except the first; an error ends
	// the pass.
	Fail       func(h *record.Header, e *format.Env) error
	FailInside func(h *record.Header) error
	OnRead     func() // before each batch of elements
	OnOpen     func() // before each reader is made
	OnEnv      func(*format.Env)
}

// New returns a dataset of one database, 0, with these records. It has no size.
func New(records ...Record) *Source {
	s := &Source{Of: new(Format), DBs: []string{"0"}, Held: map[string][]Record{}, Only: record.AllTypes, Laid: format.LayoutFlat,
		Step: 3, Space: "fake"}
	for _, r := range records {
		s.Held["0"] = append(s.Held["0"], r.In("0"))
	}
	s.Add()
	return s
}

func compare(a, b Record) int {
	return record.Compare(&record.Header{Key: a.Key, Type: a.Type}, &record.Header{Key: b.Key, Type: b.Type})
}

// Add adds records to their databases, and sorts them.
func (s *Source) Add(records ...Record) {
	if s.Held == nil {
		s.Held = map[string][]Record{}
	}
	for _, r := range records {
		s.Held[r.DB] = append(s.Held[r.DB], r)
	}
	for _, list := range s.Held {
		slices.SortStableFunc(list, compare)
	}
}

// All returns all records, in (key, type) order.
func (s *Source) All() (out []Record) {
	for _, db := range s.Databases() {
		out = append(out, s.Held[db]...)
	}
	slices.SortStableFunc(out, compare)
	return out
}

func (s *Source) Format() format.Format                        { return s.Of }
func (s *Source) Layout() format.Layout                        { return s.Laid }
func (s *Source) Sorted() bool                                 { return !s.Unsorted && !s.Reversed }
func (s *Source) Extra() []string                              { return s.Files }
func (s *Source) Close() error                                 { return nil }
func (s *Source) Keyspaces() []format.Keyspace                 { return s.Spaces }
func (s *Source) Where(string, []byte) []format.Range          { return s.Ranges }
func (s *Source) Describe(_, _ string, _, _ []byte) format.Row { return format.Row{} }

func (s *Source) Databases() []string {
	switch {
	case s.DBs != nil:
		return s.DBs
	case len(s.Held) == 0:
		return []string{"0"}
	}
	return slices.Sorted(maps.Keys(s.Held))
}

func (s *Source) Types(db string) record.TypeSet {
	if s.Only != 0 {
		return s.Only
	}
	if len(s.Held) == 0 {
		return record.Of(record.String, record.Hash)
	}
	var t record.TypeSet
	for _, r := range s.Held[db] {
		t |= record.Of(r.Type)
	}
	return t
}

func (s *Source) in(db string, t record.TypeSet, span format.Span) (out []Record) {
	for _, r := range s.Held[db] {
		if t.Has(r.Type) && bytes.Compare(r.Key, span.Lo) >= 0 && (span.Hi == nil || bytes.Compare(r.Key, span.Hi) < 0) {
			out = append(out, r)
		}
	}
	return out
}

func (s *Source) Size(db string, t record.TypeSet) int64 {
	return s.Bytes + int64(len(s.in(db, t, format.Span{})))*s.Weight
}

func (s *Source) Split(db string, t record.TypeSet, n int) ([]format.Span, error) {
	if n > 1 && s.Spans != nil {
		return s.Spans, nil
	}
	all := s.in(db, t, format.Span{})
	var out []format.Span
	var lo []byte
	for i := 1; i < n && i*len(all)/n < len(all); i++ {
		hi := all[i*len(all)/n].Key
		if len(hi) == 0 || bytes.Equal(hi, lo) {
			continue
		}
		out = append(out, format.Span{Lo: lo, Hi: hi})
		lo = hi
	}
	return append(out, format.Span{Lo: lo}), nil
}

func (s *Source) Records(_ context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.OnOpen != nil {
		s.OnOpen()
	}
	if s.OnEnv != nil {
		s.OnEnv(e)
	}
	for _, f := range s.Findings {
		if t.Has(f.Type) {
			e.Report(f)
		}
	}
	r := &reader{s: s, env: e, left: s.in(db, t, span), db: db, types: t}
	if s.Reversed {
		slices.Reverse(r.left)
	}
	r.places.Meta = s.Space
	if s.Space == "" {
		r.places.Meta = db + "/rows"
		r.places.Elems = r.places.Meta
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
	db      string
	types   record.TypeSet
	places  record.Places
	cur     Record
	elems   []record.Element // the rest of it
	header  record.Header
	key     []byte
	scratch []byte
	tally   record.Tally
}

// nextRecord moves to the next record.
func (r *reader) nextRecord() error {
	r.cur, r.left = r.left[0], r.left[1:]
	r.elems = r.cur.Elems
	clear(r.key)
	r.key = append(r.key[:0], r.cur.Key...)
	c := &r.cur
	r.header = record.Header{DB: r.db, Type: c.Type, Key: r.key, ExpireMS: c.ExpireMS, Len: int64(len(c.Elems)), Last: c.Last,
		ByName: c.ByName, Expired: c.ExpireMS != 0 && c.ExpireMS < r.env.Now.UnixMilli()}
	if r.s.Fail != nil {
		if err := r.s.Fail(&r.header, r.env); err != nil {
			return err
		}
	}
	rows := r.rows()
	r.tally.Visible += rows.Meta + rows.Elems
	r.tally.Entries += rows.Meta + rows.Elems
	return nil
}

// rows are a row for the record and, unless all records are in one keyspace, one for each element that is not a string.
func (r *reader) rows() record.Rows {
	out := record.Rows{Of: &r.places, Meta: 1}
	if r.s.Space == "" {
		out.Elems = r.cur.Rows() - 1
	}
	return out
}

func (r *reader) Next() (*record.Header, error) {
	if r.types&r.s.Disorder != 0 && !r.s.Resort {
		return nil, &store.OrderError{File: "000007.sst", Off: 4096, Keyspace: "rows", Comparer: "fake"}
	}
	if len(r.left) == 0 {
		if r.s.ReadErr != nil {
			return nil, r.s.ReadErr
		}
		return nil, io.EOF
	}
	if err := r.nextRecord(); err != nil {
		return nil, err
	}
	return &r.header, nil
}

// strings fills a batch with up to three strings.
func (r *reader) strings(b *record.Batch) error {
	if r.types&r.s.Disorder != 0 {
		return nil
	}
	for len(r.left) > 0 && len(b.Records) < 3 && r.left[0].Type == record.String && len(r.left[0].Elems) == 1 {
		if err := r.nextRecord(); err != nil {
			return err
		}
		r.header.Key = bytes.Clone(r.key)
		b.Records = append(b.Records, record.Record{Header: r.header, First: len(b.Elems), N: 1, Class: record.Copied,
			Rows: r.rows()})
		b.Elems = append(b.Elems, record.Element{Value: bytes.Clone(r.elems[0].Value)})
		if r.s.OnRead != nil {
			r.s.OnRead()
		}
	}
	return nil
}

func (r *reader) Heavy() bool { return false }

func (r *reader) Read(dst []record.Element) (int, error) {
	if r.s.OnRead != nil {
		r.s.OnRead()
	}
	clear(r.scratch)
	r.scratch = r.scratch[:0]
	if len(r.elems) == 0 {
		return 0, io.EOF
	}
	if len(r.elems) < len(r.cur.Elems) && r.s.FailInside != nil {
		if err := r.s.FailInside(&r.header); err != nil {
			return 0, err
		}
	}
	n := min(len(dst), len(r.elems))
	if r.s.Step > 0 {
		n = min(n, r.s.Step)
	}
	size := 0
	for _, e := range r.elems[:n] {
		size += len(e.Name) + len(e.Value)
	}
	r.scratch = slices.Grow(r.scratch, size)
	for i, e := range r.elems[:n] {
		dst[i] = e
		dst[i].Name, dst[i].Value = r.view(e.Name), r.view(e.Value)
	}
	r.elems = r.elems[n:]
	return n, nil
}

func (r *reader) view(b []byte) []byte {
	at := len(r.scratch)
	r.scratch = append(r.scratch, b...)
	return r.scratch[at:len(r.scratch):len(r.scratch)]
}

func (r *reader) End(rec *record.Record) error {
	rec.Rows = r.rows()
	return nil
}

func (r *reader) Close() error {
	r.env.Ledger.Add(r.places.Meta, &r.tally)
	return nil
}
