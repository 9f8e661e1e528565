package parquet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/parquet/columns"
	"kvferry/record"
	"kvferry/store"
)

// Kinds of findings.
const (
	// FindUnlisted: a file is not in the manifest.
	FindUnlisted = "unlisted-file"
	// FindIncomplete: the dump reported errors.
	FindIncomplete = "incomplete-dump"
)

// source is an open dataset.
type source struct {
	f       format.Format
	dir     string
	m       *manifest
	salvage bool
	report  func(record.Finding)
	sources *disk.Sources
	dbs     []string
	tables  map[table][]*fileLine // in key order

	mu    sync.Mutex
	files map[string]*openFile
}

// table is all rows of a type in a database.
type table struct {
	db  string
	typ record.Type
}

// openFile is a file that was opened once, with its error.
type openFile struct {
	once sync.Once
	f    *disk.File
	cols *columns.File
	seek *columns.File // reads without reading ahead
	err  error
}

// open checks which files there are.
func open(f format.Format, dir string, m *manifest, o *format.OpenOptions) (*source, error) {
	s := &source{f: f, dir: dir, m: m, salvage: o.Options.Salvage, report: o.Options.Report, sources: o.Options.Sources,
		tables: map[table][]*fileLine{}, files: map[string]*openFile{}}
	if m.head.Rows != rowsElements {
		return nil, fmt.Errorf("%s: it has rows of %s only; leave --keys-only out to dump the values", dir, m.head.Rows)
	}
	if m.end.Replaced > 0 { // other keys, which may be equal and out of order
		return nil, fmt.Errorf("%s: the dump replaced bytes in %s that are not UTF-8; leave --text=lossy out to dump the bytes",
			dir, record.Count(m.end.Replaced, "value"))
	}
	for i := range m.files {
		line := &m.files[i]
		t, err := record.ParseType(line.Type)
		if err != nil {
			return nil, &record.CorruptError{Format: Name, File: disk.Join(dir, ManifestName), Off: record.NoOffset,
				Field: "type", Err: err}
		}
		key := table{string(line.DB), t}
		s.tables[key] = append(s.tables[key], line)
		s.files[line.File] = new(openFile)
		if !slices.Contains(s.dbs, key.db) {
			s.dbs = append(s.dbs, key.db)
		}
	}
	slices.SortFunc(s.dbs, record.CompareNames)
	if len(s.dbs) == 0 {
		s.dbs = []string{"0"}
	}
	if m.end.Errors > 0 {
		dataset.Report(o, record.Finding{Kind: FindIncomplete, Severity: record.Warning,
			Detail: fmt.Sprintf("the dump reported %s; the affected records are missing", record.Count(int64(m.end.Errors), "error"))})
	}
	return s, s.checkFiles(o)
}

// path returns the path of a file that the manifest names.
func (s *source) path(file string) string { return disk.Join(s.dir, filepath.FromSlash(file)) }

// checkFiles compares the files with the manifest.
func (s *source) checkFiles(o *format.OpenOptions) error {
	there := map[string]int64{}
	err := disk.WalkTree(s.dir, func(rel string, info fs.FileInfo, _ bool) error {
		if !info.IsDir() {
			there[rel] = info.Size()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range s.m.files {
		line := &s.m.files[i]
		size, ok := there[line.File]
		delete(there, line.File)
		kind, detail := "", ""
		switch {
		case !ok:
			kind, detail = record.FindMissingFile, fmt.Sprintf("the manifest lists it with %s, which are missing",
				record.Count(line.Rows, "row"))
		case size != line.Size:
			kind, detail = record.FindFileSize, fmt.Sprintf("%s bytes, but %s in the manifest; kvferry does not read it",
				record.Number(size), record.Number(line.Size))
		default:
			continue
		}
		path := s.path(line.File)
		if !s.salvage {
			return fmt.Errorf("%s: %s", path, detail)
		}
		f := s.files[line.File]
		f.once.Do(func() { f.err = errSkipped })
		dataset.Report(o, record.Finding{Kind: kind, Severity: record.Error, DB: string(line.DB),
			Place: record.Place{File: path, Off: record.NoOffset}, Detail: detail})
	}
	for name := range there {
		if strings.HasSuffix(name, ".parquet") {
			dataset.Report(o, record.Finding{Kind: FindUnlisted, Severity: record.Error,
				Place:  record.Place{File: s.path(name), Off: record.NoOffset},
				Detail: "the manifest does not list it; kvferry does not read it"})
		}
	}
	return nil
}

// errSkipped is the error of a file that a finding has named.
var errSkipped = errors.New("skipped")

// file opens a file and checks its indexes and footer.
func (s *source) file(line *fileLine) (*openFile, error) {
	s.mu.Lock()
	o := s.files[line.File]
	s.mu.Unlock()
	o.once.Do(func() { o.err = o.open(s, line) })
	return o, o.err
}

// open opens the file once.
func (o *openFile) open(s *source, line *fileLine) (err error) {
	path := s.path(line.File)
	if o.f, err = s.sources.Open(path); err != nil {
		return err
	}
	corrupt := func(err error) error {
		var c *record.CorruptError
		if !errors.As(err, &c) {
			return fmt.Errorf("%s: %w", path, err)
		}
		c.Format, c.File = Name, path
		return err
	}
	err = columns.CheckSum(o.f, line.tail())
	if err == nil {
		o.cols, err = columns.Open(o.f, line.Size)
	}
	if err == nil {
		o.seek = o.cols.Over(o.f.Sparse())
	}
	if err == nil {
		err = o.check(line)
	}
	if err != nil {
		return corrupt(err)
	}
	return nil
}

// check compares the footer with the manifest and the columns of this version.
func (o *openFile) check(line *fileLine) error {
	odd := func(text string, args ...any) error {
		return record.Unknown(record.NoOffset, "footer", fmt.Sprintf(text, args...))
	}
	if err := o.cols.Have(columnsOf(false, false)); err != nil {
		return err
	}
	groups := o.cols.Groups()
	if len(groups) != len(line.Groups) {
		return odd("%s row groups, but %d in the manifest", record.Number(len(groups)), len(line.Groups))
	}
	for i, g := range groups {
		if w := &line.Groups[i]; g.Rows != w.Rows || g.End != w.End {
			return odd("%s rows up to offset %d in row group %d, but %s up to %d in the manifest",
				record.Number(g.Rows), g.End, i, record.Number(w.Rows), w.End)
		}
	}
	return nil
}

// Format returns the format.
func (s *source) Format() format.Format { return s.f }

// Layout returns LayoutFlat if the only database is 0.
func (s *source) Layout() format.Layout {
	if len(s.dbs) == 1 && s.dbs[0] == "0" {
		return format.LayoutFlat
	}
	return format.LayoutDB
}

// Databases returns the names of the databases with rows.
func (s *source) Databases() []string { return s.dbs }

// Sorted returns true.
func (s *source) Sorted() bool { return true }

// Types returns the types with files.
func (s *source) Types(db string) (out record.TypeSet) {
	for t := range s.tables {
		if t.db == db {
			out |= record.Of(t.typ)
		}
	}
	return cmp.Or(out, record.RedisTypes)
}

// Size returns the bytes of the files.
func (s *source) Size(db string, types record.TypeSet) (n int64) {
	for _, t := range types.Types() {
		for _, line := range s.tables[table{db, t}] {
			n += line.Size
		}
	}
	return n
}

// Split cuts the keys at the first keys of row groups.
func (s *source) Split(db string, types record.TypeSet, n int) ([]format.Span, error) {
	if n <= 1 {
		return []format.Span{{}}, nil
	}
	keys, err := s.Weigh(db, types, n)
	return dataset.Cut(keys, n), err
}

// Weigh returns the first keys of all row groups.
func (s *source) Weigh(db string, types record.TypeSet, _ int) (out []store.Weighted, err error) {
	for _, t := range types.Types() {
		for _, line := range s.tables[table{db, t}] {
			for _, g := range line.Groups {
				out = append(out, store.Weighted{Key: []byte(g.First), Bytes: line.Size * g.Rows / max(line.Rows, 1)})
			}
		}
	}
	return out, nil
}

// Records yields the records of a span.
func (s *source) Records(_ context.Context, db string, types record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {
	if !slices.Contains(s.dbs, db) {
		return nil, fmt.Errorf("%s: no database %q: have %q", s.dir, db, s.dbs)
	}
	var readers []record.Reader
	for _, t := range types.Types() {
		if lines := s.tables[table{db, t}]; lines != nil {
			readers = append(readers, newReader(s, table{db, t}, lines, span, e))
		}
	}
	return record.Merge(readers...), nil
}

// Where returns nothing: there are no raw rows.
func (s *source) Where(db string, _ []byte) (out []format.Range) {
	for _, t := range s.Types(db).Types() {
		out = append(out, format.Range{Keyspace: t.String(), Type: t})
	}
	return out
}

// Describe has no raw rows to describe.
func (s *source) Describe(string, string, []byte, []byte) format.Row {
	return format.NewDescriber().Row
}

// Keyspaces returns none.
func (s *source) Keyspaces() []format.Keyspace { return nil }

// Extra returns the manifest.
func (s *source) Extra() []string { return nil }

// Files returns the number and size of the files.
func (s *source) Files() (n int, size int64) {
	for i := range s.m.files {
		size += s.m.files[i].Size
	}
	return len(s.m.files), size
}

// Close closes the files.
func (s *source) Close() error {
	var errs []error
	for _, o := range s.files {
		if o.f != nil {
			errs = append(errs, o.f.Close())
		}
	}
	return errors.Join(errs...)
}

// groupsOf returns the row groups of a file that may have keys of a span, from and to.
func groupsOf(line *fileLine, span *format.Span) (from, to int) {
	from, to = 0, len(line.Groups)
	for i := range line.Groups {
		g := &line.Groups[i]
		if span.Lo != nil && g.below(span.Lo, false) { // the group may end with such keys
			from = i
		}
		if span.Hi != nil && string(g.First) >= string(span.Hi) {
			to = i
			break
		}
	}
	return min(from, to), to
}
