// Package fake is a format for tests: its datasets are JSON, and it fails, forgets and corrupts data on request.
package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// Format is a format for tests: a dataset is a directory of JSON files, one a shard.
type Format struct {
	Bounds format.Limits
	Groups []record.TypeSet
	// Wrap changes what Open returns.
	Wrap func(*Source)
	// Spoil changes a record before the target stores it, for proofs that must fail.
	Spoil func(*Record)
	// FailAfter makes writers fail after n records; 0 means never.
	FailAfter int
	// Forgets is the number of a task whose tables the target reports only once; 0 means none.
	Forgets int
	// OnShard is called with the memory limit of each writer.
	OnShard func(memory int64)
	// MidFinish is called between the renames of Finish.
	MidFinish func()
}

// Record is a header with its elements.
type Record struct {
	DB       string
	Type     record.Type
	Key      []byte
	ExpireMS int64
	Elems    []record.Element
	Last     []byte
}

// PerType has one group per type, like a target of five stores.
var PerType = []record.TypeSet{record.Of(record.String), record.Of(record.Hash), record.Of(record.List),
	record.Of(record.Set), record.Of(record.ZSet)}

// New returns a format that holds a name under several types, in a group each.
func New() *Format {
	return &Format{Bounds: format.Limits{SameName: true}, Groups: PerType}
}

func (f *Format) Name() string                           { return "fake" }
func (f *Format) Limits() format.Limits                  { return f.Bounds }
func (f *Format) Detect(*format.Evidence) format.Verdict { return format.Verdict{} }

func (f *Format) Open(_ context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "CURRENT")); err != nil {
		return nil, err
	}
	s := &Source{Of: f, InOrder: true, Resort: o.Options.Resort, Laid: format.LayoutFlat}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		for {
			var r Record
			if err := dec.Decode(&r); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			s.List = append(s.List, r)
		}
	}
	slices.SortStableFunc(s.List, func(a, b Record) int {
		return record.Compare(&record.Header{Key: a.Key, Type: a.Type}, &record.Header{Key: b.Key, Type: b.Type})
	})
	if f.Wrap != nil {
		f.Wrap(s)
	}
	return s, nil
}

// Source holds its records in (key, type) order.
type Source struct {
	Of       *Format
	List     []Record
	Laid     format.Layout
	InOrder  bool
	Resort   bool
	Disorder record.TypeSet // types whose records fail with an OrderError unless resort is set
	Weight   int64
	Findings []record.Finding
	ReadErr  error
	Files    []string
	Ranges   []format.Range
	OnRecord func(n int)
	OnRead   func() // before each batch of elements
	OnOpen   func() // before each reader is made
	OnEnv    func(*format.Env)
}

func (s *Source) Format() format.Format                              { return s.Of }
func (s *Source) Layout() format.Layout                              { return s.Laid }
func (s *Source) Sorted() bool                                       { return s.InOrder }
func (s *Source) Extra() []string                                    { return s.Files }
func (s *Source) Close() error                                       { return nil }
func (s *Source) Keyspaces() []format.Keyspace                       { return nil }
func (s *Source) Where(string, []byte) []format.Range                { return s.Ranges }
func (s *Source) Describe(string, string, []byte, []byte) format.Row { return format.Row{} }

func (s *Source) Databases() []string {
	var out []string
	for _, r := range s.List {
		if !slices.Contains(out, r.DB) {
			out = append(out, r.DB)
		}
	}
	slices.Sort(out)
	if out == nil {
		return []string{"0"}
	}
	return out
}

func (s *Source) Types(db string) record.TypeSet {
	var t record.TypeSet
	for _, r := range s.List {
		if r.DB == db {
			t |= record.Of(r.Type)
		}
	}
	if len(s.List) == 0 {
		return record.Of(record.String, record.Hash)
	}
	return t
}

func (s *Source) in(db string, t record.TypeSet, span format.Span) []Record {
	var out []Record
	for _, r := range s.List {
		if r.DB == db && t.Has(r.Type) && bytes.Compare(r.Key, span.Lo) >= 0 && (span.Hi == nil || bytes.Compare(r.Key, span.Hi) < 0) {
			out = append(out, r)
		}
	}
	return out
}

func (s *Source) Size(db string, t record.TypeSet) int64 {
	return int64(len(s.in(db, t, format.Span{}))) * max(s.Weight, 1)
}

func (s *Source) Split(db string, t record.TypeSet, n int) ([]format.Span, error) {
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

func (s *Source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.OnOpen != nil {
		s.OnOpen()
	}
	if s.OnEnv != nil {
		s.OnEnv(e)
	}
	recs := s.in(db, t, span)
	if !s.InOrder {
		recs = slices.Clone(recs)
		slices.Reverse(recs)
	}
	for _, f := range s.Findings {
		if t.Has(f.Type) {
			e.Report(f)
		}
	}
	rows := db + "/rows"
	r := &reader{s: s, env: e, recs: recs, db: db, types: t, places: record.Places{Meta: rows, Elems: rows}}
	return record.Gather(r, r.strings), nil
}

type reader struct {
	s      *Source
	env    *format.Env
	recs   []Record
	db     string
	types  record.TypeSet
	cur    *Record // the rest of it
	of     *Record
	tally  record.Tally
	places record.Places
	h      record.Header
}

func (r *reader) count() {
	n := r.recs[0].Rows()
	r.tally.Visible += n
	r.tally.Entries += n
	if r.s.OnRecord != nil {
		r.s.OnRecord(len(r.recs))
	}
}

func (r *reader) Next() (*record.Header, error) {
	if r.types&r.s.Disorder != 0 && !r.s.Resort {
		return nil, &store.OrderError{File: "000007.sst", Off: 4096, Keyspace: "rows", Comparer: "fake"}
	}
	if len(r.recs) == 0 {
		if r.s.ReadErr != nil {
			return nil, r.s.ReadErr
		}
		return nil, io.EOF
	}
	r.count()
	r.cur, r.of = &r.recs[0], &r.recs[0]
	r.recs = r.recs[1:]
	r.h = record.Header{DB: r.db, Type: r.cur.Type, Key: r.cur.Key, ExpireMS: r.cur.ExpireMS, Len: -1, Last: r.cur.Last}
	r.h.Expired = r.cur.ExpireMS != 0 && r.cur.ExpireMS < r.env.Now.UnixMilli()
	return &r.h, nil
}

// strings fills a batch with up to three strings.
func (r *reader) strings(b *record.Batch) error {
	if r.types&r.s.Disorder != 0 {
		return nil
	}
	for len(r.recs) > 0 && len(b.Records) < 3 && r.recs[0].Type == record.String && len(r.recs[0].Elems) == 1 {
		r.count()
		c := &r.recs[0]
		r.recs = r.recs[1:]
		h := record.Header{DB: r.db, Type: record.String, Key: c.Key, ExpireMS: c.ExpireMS, Len: 1}
		h.Expired = c.ExpireMS != 0 && c.ExpireMS < r.env.Now.UnixMilli()
		b.Records = append(b.Records, record.Record{Header: h, First: len(b.Elems), N: 1, Class: record.Copied, Rows: r.rows(c)})
		b.Elems = append(b.Elems, c.Elems[0])
		if r.s.OnRead != nil {
			r.s.OnRead()
		}
	}
	return nil
}

func (r *reader) rows(of *Record) record.Rows {
	out := rowsOf(of)
	out.Of = &r.places
	return out
}

// rowsOf returns the rows of a record: its own, and one for each element that is not a string.
func rowsOf(r *Record) record.Rows {
	if r.Type == record.String {
		return record.Rows{Meta: 1}
	}
	return record.Rows{Meta: 1, Elems: int64(len(r.Elems))}
}

// Rows returns the number of rows of a record.
func (r *Record) Rows() int64 {
	n := rowsOf(r)
	return n.Meta + n.Elems
}

func (r *reader) Heavy() bool { return false }

func (r *reader) Read(dst []record.Element) (int, error) {
	if r.s.OnRead != nil {
		r.s.OnRead()
	}
	if len(r.cur.Elems) == 0 {
		return 0, io.EOF
	}
	n := copy(dst, r.cur.Elems)
	c := *r.cur
	c.Elems = c.Elems[n:]
	r.cur = &c
	return n, nil
}

func (r *reader) End(rec *record.Record) error {
	rec.Rows = r.rows(r.of)
	return nil
}

func (r *reader) Close() error {
	r.env.Ledger.Add(r.db+"/rows", &r.tally)
	return nil
}

var (
	_ format.Format = (*Format)(nil)
	_ format.Source = (*Source)(nil)
	_ format.Target = (*Target)(nil)
)

// Dataset makes records of every type and key.
func Dataset(dbs int) []Record {
	var out []Record
	for db := range dbs {
		for i := range 60 {
			typ := record.Type(1 + i%5)
			r := Record{DB: fmt.Sprint(db), Type: typ, Key: []byte(fmt.Sprintf("key%02d", i/2))}
			for j := range 1 + i%4 {
				e := record.Element{Name: []byte(fmt.Sprint("n", j)), Value: []byte(fmt.Sprint(i, j))}
				if r.Type == record.ZSet {
					e.Score = float64(j)
				}
				r.Elems = append(r.Elems, e)
				if typ == record.String {
					r.Elems[0].Name = nil
					break
				}
			}
			out = append(out, r)
		}
	}
	return out
}
