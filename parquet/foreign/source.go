package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// source is an open directory of files, or a file.
type source struct {
	f      format.Format
	dir    string
	m      *Mapping
	o      store.Options
	files  []string // below dir; "." for dir itself
	bytes  int64
	types  map[string]record.TypeSet // with rows, by database
	dbs    []string                  // sorted
	tables int64                     // types of all databases

	mu     sync.Mutex
	sorter *extsort.Sorter // of all rows; nil before the first reader
	text   [numRoles][]byte
	last   table // of the last row, by which names are kept once
}

// maxDatabases bounds the values of a column of databases, which are in memory.
const maxDatabases = 1 << 16

// Open opens a file, or the files of a directory.
func Open(ctx context.Context, f format.Format, dir string, m *Mapping, o *format.OpenOptions) (format.Source, error) {
	s := &source{f: f, dir: dir, m: m, o: o.Options, types: map[string]record.TypeSet{}}
	var err error
	if s.files, err = list(dir); err != nil {
		return nil, err
	}
	for _, rel := range s.files {
		f, err := s.open(rel)
		if err != nil {
			if s.o.Salvage && errors.As(err, new(*record.CorruptError)) {
				continue // each reports it
			}
			return nil, err
		}
		st, err := f.f.Stat()
		if err = errors.Join(err, f.f.Close()); err != nil {
			return nil, err
		}
		s.bytes += st.Size()
	}
	if err := s.findTables(ctx); err != nil {
		return nil, err
	}
	if s.dbs = slices.SortedFunc(maps.Keys(s.types), record.CompareNames); len(s.dbs) == 0 {
		s.dbs = []string{"0"}
	}
	return s, nil
}

// findTables finds the databases and types with rows.
func (s *source) findTables(ctx context.Context) error {
	add := func(t table) {
		s.types[t.db] |= record.Of(t.typ)
		s.tables++
	}
	if !s.m.has(roleDB) && !s.m.has(roleType) {
		add(table{"0", s.m.typ})
		return nil
	}
	skip := func(_ *file, _ int, err error) error {
		if s.o.Salvage || record.IsNewer(err) {
			return nil
		}
		return err
	}
	return s.each(ctx, []role{roleDB, roleType}, skip, func(c *cells) error {
		t, err := s.tableOf(c)
		if err != nil || s.types[t.db].Has(t.typ) {
			return err
		}
		if s.tables >= maxDatabases {
			return fmt.Errorf("%s: more than %s databases in column %q: keys belong into column key", s.dir,
				record.Number(maxDatabases), s.m.columns[roleDB])
		}
		add(t)
		return nil
	})
}

// roles returns what columns are mapped to.
func (m *Mapping) roles() (out []role) {
	for r := range numRoles {
		if m.has(r) {
			out = append(out, r)
		}
	}
	return out
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

// Databases returns the names of the databases with rows; 0 if there are none.
func (s *source) Databases() []string { return slices.Clone(s.dbs) }

// Sorted returns true.
func (s *source) Sorted() bool { return true }

// Types returns the types with rows.
func (s *source) Types(db string) record.TypeSet { return cmp.Or(s.types[db], record.RedisTypes) }

// Size returns an equal part of the bytes of the files for each type in each database.
func (s *source) Size(db string, types record.TypeSet) int64 {
	return int64(len((s.types[db] & types).Types())) * (s.bytes / max(1, s.tables))
}

// Split cuts the keys at keys of some rows.
func (s *source) Split(db string, types record.TypeSet, n int) ([]format.Span, error) {
	if n <= 1 {
		return []format.Span{{}}, nil
	}
	keys, err := s.Weigh(db, types, n)
	return dataset.Cut(keys, n), err
}

// Limits of a sample.
const (
	sampledFiles = 64
	sampledKeys  = 256 // of a file
)

// Weigh returns keys from the beginning of a row group in each of some files.
func (s *source) Weigh(string, record.TypeSet, int) (out []store.Weighted, err error) {
	step := max(1, len(s.files)/sampledFiles)
	for i := 0; i < len(s.files); i += step {
		f, err := s.open(s.files[i])
		if err != nil {
			if s.o.Salvage {
				continue
			}
			return nil, err
		}
		keys, err := f.sample(i)
		if err = errors.Join(err, f.f.Close()); err != nil {
			return nil, err
		}
		for _, key := range keys {
			out = append(out, store.Weighted{Key: key, Bytes: 1})
		}
	}
	return out, nil
}

// sample returns keys of a row group. Damage is the business of who reads all rows.
func (f *file) sample(n int) (keys [][]byte, err error) {
	groups := f.cols.Groups()
	leaf := f.cells[roleKey]
	if len(groups) == 0 || leaf == nil {
		return nil, nil
	}
	g := n % len(groups)
	c, err := f.cols.Cells(g, leaf)
	if err != nil {
		return nil, nil
	}
	defer c.Close()
	every := max(1, groups[g].Rows/sampledKeys)
	for i := range groups[g].Rows {
		if c.Next() != nil {
			break
		}
		if i%every == 0 && !c.IsNull() {
			keys = append(keys, c.Append(nil))
		}
	}
	return keys, nil
}

// Records yields the records of a span. The first call sorts all rows.
func (s *source) Records(ctx context.Context, db string, types record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {
	if _, ok := slices.BinarySearchFunc(s.dbs, db, record.CompareNames); !ok {
		return nil, fmt.Errorf("%s: no database %q: have %q", s.dir, db, s.dbs)
	}
	if err := s.sort(ctx, e); err != nil {
		return nil, err
	}
	var readers []record.Reader
	for _, typ := range (s.types[db] & types).Types() {
		r, err := newReader(s, table{db, typ}, span, e)
		if err != nil {
			return nil, err
		}
		readers = append(readers, r)
	}
	return record.Merge(readers...), nil
}

// Where names the tables, which have no raw rows.
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

// Keyspaces returns nil.
func (s *source) Keyspaces() []format.Keyspace { return nil }

// Extra returns nil.
func (s *source) Extra() []string { return nil }

// Files returns the number and size of the files.
func (s *source) Files() (n int, size int64) { return len(s.files), s.bytes }

// Close removes the sorted rows.
func (s *source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorter == nil {
		return nil
	}
	return s.sorter.Close()
}
