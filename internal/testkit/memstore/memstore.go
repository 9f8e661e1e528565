// Package memstore is an in-memory store for tests of formats.
package memstore

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"kvferry/record"
	"kvferry/store"
)

// FS maps directories to stores.
type FS struct {
	mu   sync.Mutex
	dirs map[string]*Store
}

// Store is the store of one directory. It implements store.Store and store.Builder.
type Store struct {
	mu        sync.Mutex
	keyspaces []*Keyspace
	tables    []store.Table
}

// Keyspace is a sorted set of rows.
type Keyspace struct {
	name string
	cmp  store.Comparer
	mu   sync.Mutex
	rows []row
	runs [][]row
}

type row struct{ key, value []byte }

// New returns an FS without stores.
func New() *FS { return &FS{dirs: make(map[string]*Store)} }

// Open is a store.Opener.
func (f *FS) Open(_ context.Context, dir string, _ *store.Options) (store.Store, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.dirs[filepath.Clean(dir)]
	if s == nil {
		return nil, fmt.Errorf("%s: %w", dir, store.ErrNotStore)
	}
	return s, nil
}

// Create is a store.CreateFunc.
func (f *FS) Create(dir string, _ store.BuildOptions) (store.Builder, error) {
	return f.Dir(dir), nil
}

// Dir returns the store at dir, for tests to put rows into. It creates a missing store.
func (f *FS) Dir(dir string) *Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir = filepath.Clean(dir)
	if f.dirs[dir] == nil {
		f.dirs[dir] = new(Store)
	}
	return f.dirs[dir]
}

// Put sets a row in a keyspace. An undeclared keyspace is bytewise.
func (s *Store) Put(keyspace string, key, value []byte) { s.get(keyspace).Put(key, value) }

// Put sets a row.
func (k *Keyspace) Put(key, value []byte) {
	i, found := k.search(key)
	if found {
		k.rows[i].value = slices.Clone(value)
		return
	}
	k.rows = slices.Insert(k.rows, i, row{slices.Clone(key), slices.Clone(value)})
}

// Clear removes all rows.
func (k *Keyspace) Clear() { k.rows = nil }

// Delete removes a row and reports whether it existed.
func (s *Store) Delete(keyspace string, key []byte) bool { return s.get(keyspace).Delete(key) }

// Delete removes a row and reports whether it existed.
func (k *Keyspace) Delete(key []byte) bool {
	i, found := k.search(key)
	if found {
		k.rows = slices.Delete(k.rows, i, i+1)
	}
	return found
}

// Get returns the value of a row, or nil if it does not exist.
func (s *Store) Get(keyspace string, key []byte) []byte {
	k := s.get(keyspace)
	if i, found := k.search(key); found {
		return k.rows[i].value
	}
	return nil
}

// Len returns the number of rows of a keyspace.
func (s *Store) Len(keyspace string) int { return len(s.get(keyspace).rows) }

func (s *Store) get(name string) *Keyspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keyspaces {
		if k.name == name {
			return k
		}
	}
	k := &Keyspace{name: name, cmp: store.Bytewise}
	s.keyspaces = append(s.keyspaces, k)
	return k
}

// Keyspace declares a keyspace and its order.
func (s *Store) Keyspace(name string, c store.Comparer) error {
	s.get(name).cmp = c
	return nil
}

// Keyspaces lists the keyspaces in order of declaration.
func (s *Store) Keyspaces() []store.Keyspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]store.Keyspace, len(s.keyspaces))
	for i, k := range s.keyspaces {
		out[i] = k
	}
	return out
}

// Files returns nil: the store has no files.
func (s *Store) Files() []store.File { return nil }

// Close keeps the rows, so the store can be opened again.
func (s *Store) Close() error { return nil }

// Run starts a sorted run.
func (s *Store) Run(keyspace string, shard int, lane uint64) (store.Run, error) {
	return &run{store: s, keyspace: s.get(keyspace), table: store.Table{Keyspace: keyspace, Shard: shard, Lane: lane}}, nil
}

// Tables returns the tables of a shard.
func (s *Store) Tables(shard int) ([]store.Table, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []store.Table
	for _, t := range s.tables {
		if t.Shard == shard {
			out = append(out, t)
		}
	}
	return out, nil
}

// Adopt ignores the tables: memory does not outlive a process.
func (s *Store) Adopt([]store.Table) error { return nil }

// Finish sorts the runs and returns an error if they overlap.
func (s *Store) Finish() error {
	for _, k := range s.keyspaces {
		if err := k.finish(); err != nil {
			return err
		}
	}
	return nil
}

// Abort drops all rows.
func (s *Store) Abort() { s.keyspaces = nil }

func (k *Keyspace) finish() error {
	slices.SortFunc(k.runs, func(a, b []row) int { return k.cmp.Compare(a[0].key, b[0].key) })
	for _, r := range k.runs {
		if n := len(k.rows); n > 0 && k.cmp.Compare(k.rows[n-1].key, r[0].key) >= 0 {
			return fmt.Errorf("%s: runs overlap at %s", k.name, record.Quote(r[0].key))
		}
		k.rows = append(k.rows, r...)
	}
	k.runs = nil
	return nil
}

type run struct {
	store    *Store
	keyspace *Keyspace
	table    store.Table
	rows     []row
}

func (r *run) Append(key, value []byte) error {
	if n := len(r.rows); n > 0 && r.keyspace.cmp.Compare(r.rows[n-1].key, key) >= 0 {
		return fmt.Errorf("%s: key %s after %s is out of order", r.keyspace.name,
			record.Quote(key), record.Quote(r.rows[n-1].key))
	}
	r.rows = append(r.rows, row{slices.Clone(key), slices.Clone(value)})
	return nil
}

func (r *run) AppendGroup(g *store.Group) error { return g.Each(r.Append) }

func (r *run) Close() error {
	if len(r.rows) == 0 {
		return nil
	}
	r.keyspace.mu.Lock()
	r.keyspace.runs = append(r.keyspace.runs, r.rows)
	r.keyspace.mu.Unlock()
	r.table.Entries = int64(len(r.rows))
	r.table.First, r.table.Last = r.rows[0].key, r.rows[len(r.rows)-1].key
	r.store.mu.Lock()
	r.store.tables = append(r.store.tables, r.table)
	r.store.mu.Unlock()
	return nil
}

func (r *run) Abort() { r.rows = nil }

// Name returns the keyspace's name.
func (k *Keyspace) Name() string { return k.name }

// Comparer returns the comparer of the keyspace.
func (k *Keyspace) Comparer() *store.Comparer { return &k.cmp }

func (k *Keyspace) search(key []byte) (int, bool) {
	return slices.BinarySearchFunc(k.rows, key, func(r row, key []byte) int { return k.cmp.Compare(r.key, key) })
}

func (k *Keyspace) slice(lo, hi []byte) []row {
	from, to := 0, len(k.rows)
	if lo != nil {
		from, _ = k.search(lo)
	}
	if hi != nil {
		to, _ = k.search(hi)
	}
	return k.rows[min(from, to):to]
}

// Rows iterates over the rows in [lo, hi).
func (k *Keyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	return &iterator{k: k, rows: k.slice(lo, hi)}, nil
}

// Entries iterates over the rows in [lo, hi) as puts with sequence number 0.
func (k *Keyspace) Entries(lo, hi []byte) (store.EntryIterator, error) {
	return &entries{rows: k.slice(lo, hi)}, nil
}

// Unordered calls f with each row as an entry.
func (k *Keyspace) Unordered(f func(*store.Entry) error) error {
	for _, r := range k.rows {
		if err := f(&store.Entry{Key: r.key, Value: r.value}); err != nil {
			return err
		}
	}
	return nil
}

// Sample returns every key.
func (k *Keyspace) Sample(int) ([]store.Weighted, error) {
	var out []store.Weighted
	for _, r := range k.rows {
		out = append(out, store.Weighted{Key: r.key, Bytes: int64(len(r.key) + len(r.value))})
	}
	return out, nil
}

// Size returns the size of all keys and values.
func (k *Keyspace) Size() int64 {
	var n int64
	for _, r := range k.rows {
		n += int64(len(r.key) + len(r.value))
	}
	return n
}

type iterator struct {
	k    *Keyspace
	rows []row
	n    int64
}

func (it *iterator) Next() (key, value []byte, err error) {
	if len(it.rows) == 0 {
		return nil, nil, io.EOF
	}
	r := it.rows[0]
	it.rows = it.rows[1:]
	it.n++
	return r.key, r.value, nil
}

func (it *iterator) SeekGE(key []byte) error {
	i, _ := slices.BinarySearchFunc(it.rows, key, func(r row, key []byte) int { return it.k.cmp.Compare(r.key, key) })
	it.rows = it.rows[i:]
	return nil
}

// NextBatch ends a batch after some keys, chosen by their last byte, so that tests see batches of all sizes.
func (it *iterator) NextBatch(rows []store.Row) (int, error) {
	n := 0
	for n < len(rows) && len(it.rows) > 0 {
		key, value, err := it.Next()
		if err != nil {
			return n, err
		}
		rows[n] = store.Row{Key: key, Value: value}
		n++
		if len(key) > 0 && key[len(key)-1]%8 == 7 {
			break
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (it *iterator) PlaceAt(int) record.Place { return it.Place() }

func (it *iterator) Place() record.Place { return record.Place{File: "memory", Level: -1} }

func (it *iterator) Tally(t *record.Tally) {
	t.Entries += it.n
	t.Visible += it.n
	it.n = 0
}

func (it *iterator) Close() error { return nil }

type entries struct {
	rows []row
	e    store.Entry
}

func (it *entries) Next() (*store.Entry, error) {
	if len(it.rows) == 0 {
		return nil, io.EOF
	}
	it.e = store.Entry{Key: it.rows[0].key, Value: it.rows[0].value}
	it.rows = it.rows[1:]
	return &it.e, nil
}

func (it *entries) Close() error { return nil }
