package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// Kinds of findings about RDB files.
const (
	FindDamagedValue = "damaged-value"
	FindDuplicateKey = "duplicate-key"
	FindStreamLength = "stream-length"
	FindUnreadMeta   = "unread-metadata"
	FindTrailing     = "trailing-data"
	FindScoreNaN     = "score-nan"
	FindMemberExpiry = "member-expiry"
)

// source is an open file.
type source struct {
	format  format.Format
	name    string
	file    *disk.File
	sources *disk.Sources // that the file is one of; may be nil
	*index

	mu     sync.Mutex
	orders []*order // that spans are read of
}

// Open opens a file as a source of a format that has its records in one. Damage is an error, or with Salvage a finding: what
// comes before it is read.
func Open(ctx context.Context, f format.Format, location string, o *format.OpenOptions) (format.Source, error) {
	file, damage, err := openFile(ctx, location, o)
	if corrupt := (*record.CorruptError)(nil); errors.As(err, &corrupt) {
		err = named(location, err)
	}
	if err != nil {
		return nil, err
	}
	return open(ctx, f, location, file, damage, o, nil)
}

// OpenFile is Open for a file that is open and called name. The source closes it. Parts are where what several servers sent
// begins: what is unknown in one costs no other.
func OpenFile(ctx context.Context, f format.Format, name string, file *disk.File, o *format.OpenOptions, parts ...int64) (format.Source, error) {
	return open(ctx, f, name, file, nil, o, parts)
}

// open opens a file. packed is why not all of it could be unpacked.
func open(ctx context.Context, f format.Format, name string, file *disk.File, packed error, o *format.OpenOptions, parts []int64) (format.Source, error) {
	x, err := scan(ctx, file, parts, &o.Options)
	if packed != nil {
		err = x.cut(packed, err)
	}
	if err == nil {
		s := &source{format: f, name: name, file: file, index: x, sources: o.Options.Sources}
		if err = s.check(o); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(named(name, err), file.Close())
}

// named says which file an error is about.
func named(location string, err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) && c.File == "" {
		c.File = location
		return err
	}
	return fmt.Errorf("%s: %w", location, err)
}

// check reports what is wrong with the file as a whole. Damage is an error unless it is salvaged.
func (s *source) check(o *format.OpenOptions) error {
	report := func(kind string, severity record.Severity, off int64, detail string) {
		dataset.Report(o, record.Finding{Kind: kind, Severity: severity, Place: record.Place{File: s.name, Off: off}, Detail: detail})
	}
	damage := s.index.err
	if damage == nil {
		damage = s.index.damage
	}
	var c *record.CorruptError
	switch errors.As(damage, &c); {
	case damage == nil:
	case errors.Is(s.index.err, rdb.ErrNewer):
		report(record.FindNewer, record.Error, c.Off, fmt.Sprintf("%s; the rest of the file, from offset %d on, is not read", c.Reason(), s.end))
	case c == nil || !o.Options.Salvage:
		return damage
	default:
		text := c.Reason()
		if s.index.err != nil {
			text += fmt.Sprintf("; what follows offset %d cannot be read", s.end)
		}
		report(record.FindDamagedFile, record.Error, c.Off, text)
	}
	for _, part := range s.unread {
		if errors.As(part.err, &c) {
			report(record.FindNewer, record.Error, c.Off, fmt.Sprintf("%s; the rest of what that server sent, from offset %d on, is not read", c.Reason(), part.from))
		}
	}
	for _, old := range s.old {
		report(record.FindNewer, record.Error, old.off, OldFunctionDetail(old.key))
	}
	if s.skips > 0 {
		report(FindUnreadMeta, record.Warning, record.NoOffset,
			fmt.Sprintf("metadata that modules keep with %s is not read", record.Plural(s.skips, "key")))
	}
	return s.checkTail(o)
}

// OldFunctionDetail is the text of a finding about a library that is not read.
func OldFunctionDetail(name []byte) string {
	return fmt.Sprintf("function library %s is in the form of a candidate of Redis 7.0, which kvferry does not read", record.Quote(name))
}

// checkTail reports what follows the end of the file. Data that is not read is damage.
func (s *source) checkTail(o *format.OpenOptions) error {
	severity, detail, ok := s.tail.finding()
	if !ok {
		return nil
	}
	if severity == record.Error && !o.Options.Salvage {
		return &record.CorruptError{Off: s.tail.off, Field: "end", Err: errors.New(detail)}
	}
	off := s.tail.off
	if severity < record.Error {
		off = s.index.rest // of everything that is not read, zeros as well
	}
	dataset.Report(o, record.Finding{Kind: FindTrailing, Severity: severity, Place: record.Place{File: s.name, Off: off}, Detail: detail})
	return nil
}

// Format returns the format.
func (s *source) Format() format.Format { return s.format }

// Layout returns LayoutDB: databases have numbers.
func (s *source) Layout() format.Layout {
	if len(s.dbs) == 1 && s.dbs[0].n == 0 {
		return format.LayoutFlat
	}
	return format.LayoutDB
}

// Databases returns the numbers of those that have keys; 0 when there are none.
func (s *source) Databases() []string {
	out := make([]string, len(s.dbs))
	for i, db := range s.dbs {
		out[i] = db.name
	}
	return out
}

func (s *source) database(name string) *database {
	for _, db := range s.dbs {
		if db.name == name {
			return db
		}
	}
	return nil
}

// Sorted returns true: records of a span of keys are sorted. Those of a section come as the file has them.
func (s *source) Sorted() bool { return true }

// Types returns the types that there are keys of.
func (s *source) Types(db string) record.TypeSet {
	if d := s.database(db); d != nil && d.types != 0 {
		return d.types
	}
	return record.RedisTypes
}

// Size returns the bytes of keys of some types.
func (s *source) Size(db string, t record.TypeSet) (n int64) {
	if d := s.database(db); d != nil {
		for _, typ := range t.Types() {
			n += d.sizes[typ]
		}
	}
	return n
}

// Split cuts the keys by samples of them.
func (s *source) Split(db string, _ record.TypeSet, n int) ([]format.Span, error) {
	d := s.database(db)
	if d == nil || n <= 1 {
		return []format.Span{{}}, nil
	}
	return dataset.Cut(append(d.samples[:0:0], d.samples...), n), nil
}

// Sections cuts the file where it need not be read in the order of keys.
func (s *source) Sections(db string, _ record.TypeSet, n int) ([]format.Span, error) {
	d := s.database(db)
	if d == nil || len(d.sections) == 0 {
		return []format.Span{{To: s.end}}, nil
	}
	var out []format.Span
	n = min(max(n, 1), len(d.sections))
	for i := range n {
		from, to := len(d.sections)*i/n, len(d.sections)*(i+1)/n
		out = append(out, format.Span{From: d.sections[from].from, To: d.sections[to-1].to})
	}
	return out, nil
}

// Records yields the records of a section in the order of the file, those of a span in the order of keys.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	d := s.database(db)
	if d == nil {
		return nil, fmt.Errorf("%s: no database %q", s.name, db)
	}
	r := newReader(s, d, t, e)
	if span.IsSection() {
		r.items = s.cutter(ctx, d, span.From, span.To)
		return r, nil
	}
	sorted, err := s.sorted(ctx, d, t, span, e)
	if err != nil {
		return nil, err
	}
	r.items = sorted
	return r, nil
}

// Where says that any item may be of a key.
func (s *source) Where(db string, key []byte) []format.Range {
	return []format.Range{{Keyspace: Keyspace, Lo: key, Hi: append(append([]byte{}, key...), 0)}}
}

// Keyspaces returns the items of each database.
func (s *source) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, db := range s.dbs {
		out = append(out, format.Keyspace{DB: db.name, Name: Keyspace, Keyspace: &keyspace{s, db}})
	}
	return out
}

// Rest counts the bytes behind the checksum, which are no part of an RDB file.
func (s *source) Rest() int64 { return s.size - s.index.rest }

// Extra returns none.
func (s *source) Extra() []string { return nil }

// FieldExpiry reports whether there are hashes of a type whose fields can have an expiry.
func (s *source) FieldExpiry() bool { return s.fields }

// Files counts the file.
func (s *source) Files() (int, int64) { return 1, s.size }

// Close closes the file, and drops what was sorted of it.
func (s *source) Close() (err error) {
	for _, o := range s.orders {
		err = errors.Join(err, o.close())
	}
	return errors.Join(err, s.file.Close())
}

// header is how the file begins.
func (s *source) header() rdb.Header { return s.index.header }
