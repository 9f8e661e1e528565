package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// Open opens an RDB file as a source of format f. Damage is an error; with Salvage it is a finding, and the items before
// it are read.
func Open(ctx context.Context, f format.Format, location string, o *format.OpenOptions) (format.Source, error) {
	file, damage, err := openFile(ctx, location, o)
	if corrupt := (*record.CorruptError)(nil); errors.As(err, &corrupt) {
		err = named(location, err)
	}
	if err != nil {
		return nil, err
	}
	src, err := open(ctx, f, location, file, damage, o, nil)
	if err != nil || !o.Options.Own {
		return src, err
	}
	if err := src.(*source).checkOwn(); err != nil {
		return nil, errors.Join(named(location, err), src.Close())
	}
	return src, nil
}

// OpenFile opens an already open file under a name. The source closes it. Parts are the offsets where the data of each
// server begins: an unknown item hides only the rest of its part.
func OpenFile(ctx context.Context, f format.Format, name string, file *disk.File, o *format.OpenOptions,
	parts ...int64) (format.Source, error) {
	return open(ctx, f, name, file, nil, o, parts)
}

// open scans a file, unless o has its scan. packed is the reason why decompression stopped early.
func open(ctx context.Context, f format.Format, name string, file *disk.File, packed error, o *format.OpenOptions,
	parts []int64) (format.Source, error) {
	file.Keep(o.Options.TempDir) // the scan is the first reading of two
	var err error
	var sort *sorting
	if o.Lookups {
		sort = &sorting{ctx: ctx, o: &o.Options}
	}
	x := parseScan(o.Scan)
	if x != nil && packed == nil && sort == nil {
		err = x.chained(file)
	} else {
		x, err = scan(ctx, file, parts, &o.Options, sort)
	}
	if packed != nil {
		err = x.cut(packed, err)
	}
	if err == nil {
		s := &source{format: f, name: name, file: file, index: x, sources: o.Options.Sources, keepHalf: o.Options.HalfImported}
		if err = s.check(o); err == nil {
			err = sort.end(s)
		}
		if err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(named(name, err), sort.close(), file.Close())
}

// check reports problems of the whole file. Damage is an error unless Salvage is set. So is a rest that is not read, if no
// one would hear of it or the file is a target that is read back: a damaged end looks like a newer type.
func (s *source) check(o *format.OpenOptions) error {
	finding := func(kind string, off int64, detail string) record.Finding {
		return record.Finding{Kind: kind, Severity: record.Error, Place: record.Place{File: s.name, Off: off}, Detail: detail}
	}
	damage := s.index.err
	if damage == nil {
		damage = s.index.damage
	}
	var c *record.CorruptError
	switch errors.As(damage, &c); {
	case damage == nil:
	case errors.Is(s.index.err, rdb.ErrNewer) && o.Options.Report != nil && !o.Options.Own:
		f := finding(record.FindNewer, c.Off, fmt.Sprintf("%s; the rest of the file, from offset %d on, is not read", c.Reason(),
			s.end))
		f.Lost, f.Sure = s.lost()
		f.Unread = s.unreadBytes()
		dataset.Report(o, f)
	case c == nil || !o.Options.Salvage:
		return damage
	default:
		text := c.Reason()
		if s.index.err != nil {
			text += fmt.Sprintf("; the file cannot be read after offset %d", s.end)
		}
		f := finding(record.FindDamagedFile, c.Off, text)
		f.Lost, f.Sure = s.lost()
		f.Unread = s.unreadBytes()
		dataset.Report(o, f)
	}
	for _, part := range s.unread {
		if errors.As(part.err, &c) {
			f := finding(record.FindNewer, c.Off,
				fmt.Sprintf("%s; the rest of what that server sent, from offset %d on, is not read", c.Reason(), part.from))
			f.Unread = part.to - part.from
			dataset.Report(o, f)
		}
	}
	for _, old := range s.old {
		dataset.Report(o, finding(record.FindNewer, old.off, OldFunctionDetail(old.key)))
	}
	if s.half > 0 {
		f := finding(FindHalfImported, record.NoOffset, HalfDetail(s.half, s.keepHalf))
		f.Severity = record.Note
		dataset.Report(o, f)
	}
	if s.skips > 0 {
		f := finding(FindUnreadMeta, record.NoOffset,
			fmt.Sprintf("metadata that modules keep with %s is not read", record.Count(s.skips, "key")))
		f.Severity = record.Warning
		dataset.Report(o, f)
	}
	return s.checkTail(o)
}

// Half returns the number of items that are no records, because their slots were being imported.
func (s *source) Half() int64 {
	if s.keepHalf {
		return 0
	}
	return s.half
}

// checkOwn returns an error for a file that is not a target of the format: its version tells readers how to read it and
// whether it has a checksum, so a file with a damaged one may look intact.
func (s *source) checkOwn() error {
	v, err := rdb.ParseVersion(cmp.Or(s.format.(interface{ TargetVersion() string }).TargetVersion(),
		rdb.DefaultVersion.String()))
	wrong := func(off int64, field, what string) error {
		return &record.CorruptError{Off: off, Field: field, Err: errors.New(what)}
	}
	switch h := s.header(); {
	case err != nil:
		return err
	case h.Version != v.Number || h.Valkey != v.Valkey:
		return wrong(0, "header", fmt.Sprintf("%s, which is not that of version %s", h, v))
	case s.sum == 0:
		return wrong(s.end, "checksum", "there is none")
	case s.Rest() > 0:
		return wrong(s.rest, "end", record.Count(s.Rest(), "byte")+" follow")
	}
	return nil
}

// OldFunctionDetail is the text of the finding about a library in an unsupported form.
func OldFunctionDetail(name []byte) string {
	return fmt.Sprintf("function library %s is in the form of a candidate of Redis 7.0, which kvferry does not read",
		record.Quote(name))
}

// checkTail reports data after the end. Ignored data (another file, commands) is an error unless Salvage is set.
func (s *source) checkTail(o *format.OpenOptions) error {
	severity, detail, ok := s.tail.finding()
	if !ok {
		return nil
	}
	if severity == record.Error && !o.Options.Salvage {
		return &record.CorruptError{Off: s.tail.off, Field: "end", Err: errors.New(detail)}
	}
	f := record.Finding{Kind: FindTrailing, Severity: severity, Place: record.Place{File: s.name, Off: s.tail.off},
		Detail: detail, Unread: s.size - s.tail.off}
	if severity < record.Error {
		f.Place.Off, f.Unread = s.index.rest, 0 // all ignored bytes, including zeros
	}
	dataset.Report(o, f)
	return nil
}

// Format returns the format.
func (s *source) Format() format.Format { return s.format }

// Layout returns LayoutDB, or LayoutFlat for a file with only database 0.
func (s *source) Layout() format.Layout {
	if len(s.dbs) == 1 && s.dbs[0].n == 0 {
		return format.LayoutFlat
	}
	return format.LayoutDB
}

// Databases returns the numbers of the databases with keys, or 0 if the file is empty.
func (s *source) Databases() []string {
	out := make([]string, len(s.dbs))
	for i, db := range s.dbs {
		out[i] = db.name
	}
	return out
}

// Sorted returns true: records of a span are sorted. Records of a section come in file order.
func (s *source) Sorted() bool { return true }

// Types returns the types of the keys in a database.
func (s *source) Types(db string) record.TypeSet {
	if d := s.database(db); d != nil && d.types != 0 {
		return d.types
	}
	return record.RedisTypes
}

// Split splits the keys at sampled keys.
func (s *source) Split(db string, _ record.TypeSet, n int) ([]format.Span, error) {
	d := s.database(db)
	if d == nil || n <= 1 {
		return []format.Span{{}}, nil
	}
	return dataset.Cut(append(d.samples[:0:0], d.samples...), n), nil
}

// Sections splits the file, for reading in file order.
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

// Records yields the records of a section in file order, or of a span in key order.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {
	d := s.database(db)
	if d == nil {
		return nil, fmt.Errorf("%s: no database %q", s.name, db)
	}
	if span.IsSection() {
		return newReader(s, d, t, e, s.cutter(ctx, d, span.From, span.To)), nil
	}
	sorted, err := s.sorted(ctx, d, t, span, e)
	if err != nil {
		return nil, err
	}
	return newReader(s, d, t, e, sorted), nil
}

// Where returns the range of a single key.
func (s *source) Where(db string, key []byte) []format.Range {
	lo, hi := store.KeyRange(key)
	return []format.Range{{Keyspace: Keyspace, Lo: lo, Hi: hi}}
}

// Keyspaces returns the items of each database.
func (s *source) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, db := range s.dbs {
		out = append(out, format.Keyspace{DB: db.name, Name: Keyspace, Keyspace: &keyspace{s, db}})
	}
	return out
}

// Rest returns the number of bytes after the checksum.
func (s *source) Rest() int64 { return s.size - s.index.rest }

// Extra returns nil.
func (s *source) Extra() []string { return nil }

// Files counts the file.
func (s *source) Files() (int, int64) { return 1, s.size }

// Close closes the file and its sorted items.
func (s *source) Close() (err error) {
	for _, o := range s.orders {
		err = errors.Join(err, o.close())
	}
	return errors.Join(err, s.file.Close())
}

// Shape names the version of the file.
func (s *source) Shape() format.Shape { return ShapeOf(s.header()) }

// ShapeOf names the newest writable version of RDB files that is no newer than that of a header, unless that is the
// default.
func ShapeOf(h rdb.Header) format.Shape {
	best := rdb.DefaultVersion
	for _, name := range rdb.Versions() {
		v, err := rdb.ParseVersion(name)
		if err == nil && v.Valkey == h.Valkey && v.Number <= h.Version && v.Number > best.Number {
			best = v
		}
	}
	if best == rdb.DefaultVersion {
		return format.Shape{}
	}
	return format.Shape{RDBVersion: best.String()}
}
