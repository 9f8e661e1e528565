package aof

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/redis/state"
	"kvferry/store"
)

// source is a replayed log.
type source struct {
	format    *Format
	log       *Log
	state     *state.State
	libraries [][]byte // source code of the function libraries
	header    rdb.Header
	half      int64
}

// Half returns the number of items that are no records, because their slots were being imported.
func (s *source) Half() int64 { return s.half }

// Open replays a log into a state on disk, which Close removes. If the log is just an RDB file without commands, Open
// reads that file directly.
func (f *Format) Open(ctx context.Context, location string, o *format.OpenOptions) (format.Source, error) {
	log, err := Find(location)
	if err == nil {
		err = log.watch(o.Options.Sources)
	}
	if err != nil {
		return nil, err
	}
	if g := log.guess; g != nil {
		if !o.Options.Salvage && g.refused() {
			return nil, &ManifestError{g}
		}
		dataset.Report(o, g.finding())
	}
	log.reportLeft(func(f record.Finding) { dataset.Report(o, f) })
	if o.Options.Own {
		return f.openOwn(ctx, location, log, o)
	}
	if src, _ := f.openBase(ctx, log, o); src != nil {
		return src, nil
	}
	st, err := state.New(state.Options{Memory: o.Options.Memory, TempDir: o.Options.TempDir})
	if err != nil {
		return nil, err
	}
	now := o.Options.Now
	if now.IsZero() {
		now = time.Now()
	}
	srv := &state.Server{DB: st, Now: now.UnixMilli()}
	r := &replay{ctx: ctx, log: log, server: srv, salvage: o.Options.Salvage, report: o.Options.Report, copied: o.Options.Copied,
		tempDir: o.Options.TempDir, sources: o.Options.Sources, keepHalf: o.Options.HalfImported}
	srv.Restore, srv.RestoreFunctions = r.restore, r.restoreFunctions
	if err = r.all(); err == nil {
		err = st.Seal()
	}
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return &source{f, log, st, srv.Functions(), r.header, r.half}, nil
}

// openOwn opens a target, which consists of the manifest and a base as they are written.
func (f *Format) openOwn(ctx context.Context, location string, log *Log, o *format.OpenOptions) (format.Source, error) {
	path := disk.Join(location, logDir, manifestName)
	data, _, err := readLimited(path, maxManifest)
	if err == nil && !bytes.Equal(data, ownManifest()) {
		err = &record.CorruptError{Format: Name, File: path, Off: 0, Field: "manifest", Err: errors.New("it differs from the manifest that kvferry wrote")}
	}
	if err != nil {
		return nil, err
	}
	return f.openBase(ctx, log, o)
}

// openBase opens a log that consists of one intact RDB file; it returns nil for any other log, with the reason.
func (f *Format) openBase(ctx context.Context, log *Log, o *format.OpenOptions) (format.Source, error) {
	if len(log.Files) != 1 {
		return nil, fmt.Errorf("%s: %s", log.Dir, record.Count(int64(len(log.Files)), "file"))
	}
	path := disk.Join(log.Dir, log.Files[0])
	if head, err := readHead(path); err != nil || !isSnapshot(head) {
		return nil, cmp.Or(err, fmt.Errorf("%s: no RDB file", path))
	}
	var told []record.Finding
	strict := *o
	strict.Options.Salvage = false // the replay reports damage
	strict.Options.Report = func(f record.Finding) { told = append(told, f) }
	src, err := redis.Open(ctx, f, path, &strict)
	if err != nil {
		return nil, err
	}
	if r, ok := format.As[interface{ Rest() int64 }](src); !ok || r.Rest() > 0 {
		return nil, errors.Join(fmt.Errorf("%s: commands follow", path), src.Close())
	}
	for _, f := range told {
		dataset.Report(o, f)
	}
	return src, nil
}

func (s *source) Format() format.Format { return s.format }
func (s *source) Layout() format.Layout { return format.LayoutFlat }
func (s *source) Sorted() bool          { return true }

// Shape names the newest version of the RDB parts, or the first that holds what commands have made.
func (s *source) Shape() format.Shape {
	h := s.header
	if s.state.ExpiresFields() && !h.Valkey {
		h.Version = max(h.Version, rdb.FieldsVersion)
	}
	return redis.ShapeOf(h)
}

func (s *source) Extra() []string { return nil }
func (s *source) Close() error    { return s.state.Close() }

// Databases returns the databases with keys.
func (s *source) Databases() []string {
	var out []string
	for _, db := range s.state.Databases() {
		out = append(out, strconv.Itoa(db))
	}
	if len(out) == 0 || len(s.libraries) > 0 && out[0] != functionsDB {
		out = append([]string{functionsDB}, out...)
	}
	return out
}

// functionsDB is the database that shows functions, which belong to no database.
const functionsDB = "0"

// Items returns the number of records.
func (s *source) Items() int64 {
	n := int64(len(s.libraries))
	for _, db := range s.state.Databases() {
		for _, records := range s.state.Sizes(db).Records {
			n += records
		}
	}
	return n
}

// Types returns the types of the keys in a database.
func (s *source) Types(db string) (t record.TypeSet) {
	if z := s.sizes(db); z != nil {
		for typ, n := range z.Records {
			if n > 0 {
				t |= record.Of(record.Type(typ))
			}
		}
	}
	if db == functionsDB && len(s.libraries) > 0 {
		t |= record.Of(record.Other)
	}
	return t
}

func (s *source) sizes(db string) *state.Sizes {
	n, err := strconv.Atoi(db)
	if err != nil {
		return nil
	}
	return s.state.Sizes(n)
}

// Size returns the approximate bytes of the records of some types.
func (s *source) Size(db string, t record.TypeSet) (n int64) {
	z := s.sizes(db)
	for typ := range record.NumTypes {
		if z != nil && t.Has(record.Type(typ)) {
			n += z.Bytes[typ]
		}
	}
	return n
}

// Weigh returns up to n evenly spaced keys of a database.
func (s *source) Weigh(db string, t record.TypeSet, n int) (out []store.Weighted, err error) {
	number, err := strconv.Atoi(db)
	if err != nil {
		return nil, err
	}
	stretches, err := s.state.Weigh(number, t, n)
	for _, x := range stretches {
		out = append(out, store.Weighted(x))
	}
	return out, err
}

// Split splits a database at evenly spaced keys.
func (s *source) Split(db string, _ record.TypeSet, n int) ([]format.Span, error) {
	spans := []format.Span{{}}
	for _, key := range s.sizes(db).Split(n) {
		spans[len(spans)-1].Hi = key
		spans = append(spans, format.Span{Lo: key})
	}
	return spans, nil
}

// Seeks returns the types whose elements are rows of the replayed state.
func (s *source) Seeks() record.TypeSet {
	return record.Of(record.Hash, record.List, record.Set, record.ZSet)
}

// Records yields the records of a span.
func (s *source) Records(_ context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	n, err := strconv.Atoi(db)
	if err != nil {
		return nil, err
	}
	r, err := s.state.Records(n, t, span.Lo, span.Hi, e.Now, e.Ledger, e.Start)
	if err != nil || db != functionsDB || !t.Has(record.Other) || len(s.libraries) == 0 {
		return r, err
	}
	return record.Merge(r, record.Gather(newFunctions(s.libraries, span, e.Ledger), nil)), nil
}

// rows is the only keyspace: records.
const rows = "records"

// Where returns the whole keyspace: a replayed log has no rows per key.
func (s *source) Where(string, []byte) []format.Range { return []format.Range{{Keyspace: rows}} }

// Describe returns an error, because a log has no rows.
func (s *source) Describe(string, string, []byte, []byte) format.Row {
	return format.Row{Version: -1, Count: -1, Err: errors.New("an append-only file has no rows")}
}

func (s *source) Keyspaces() []format.Keyspace { return nil }

// Files counts the loaded files.
func (s *source) Files() (n int, bytes int64) { return len(s.log.Files), s.log.Bytes() }

// functions yields function libraries as records.
type functions struct {
	codes  [][]byte
	names  []string
	header record.Header
	code   []byte
	read   bool
	tally  record.Tally
	ledger *record.Ledger
}

func newFunctions(codes [][]byte, span format.Span, ledger *record.Ledger) *functions {
	f := &functions{ledger: ledger}
	for _, code := range codes {
		name := string(record.Library.AppendName(nil, rdb.LibraryName(code)))
		if span.Lo != nil && name < string(span.Lo) || span.Hi != nil && name >= string(span.Hi) {
			continue
		}
		f.codes, f.names = append(f.codes, code), append(f.names, name)
	}
	return f
}

func (f *functions) Next() (*record.Header, error) {
	if len(f.codes) == 0 {
		return nil, io.EOF
	}
	f.header = record.Header{DB: functionsDB, Type: record.Other, Key: []byte(f.names[0]), Keyless: record.Library, Len: 1}
	f.code, f.read = f.codes[0], false
	f.codes, f.names = f.codes[1:], f.names[1:]
	f.tally.Visible++
	f.tally.Entries++
	return &f.header, nil
}

func (f *functions) Heavy() bool { return false }

// places is the keyspace of all records.
var places = &record.Places{Meta: rows}

func (f *functions) End(r *record.Record) error {
	r.Rows = record.Rows{Of: places, Meta: 1}
	return nil
}

func (f *functions) Read(dst []record.Element) (int, error) {
	if f.read {
		return 0, io.EOF
	}
	f.read = true
	dst[0] = record.Element{Name: []byte(record.Library.String()), Value: f.code}
	return 1, nil
}

func (f *functions) Close() error {
	f.ledger.Add(rows, &f.tally)
	return nil
}
