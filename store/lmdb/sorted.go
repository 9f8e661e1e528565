package lmdb

import (
	"io"

	"kvferry/internal/extsort"
	"kvferry/record"
	"kvferry/store"
)

// sorted reads all rows of a tree, whatever its order, and yields those of [lo, hi) sorted.
func (k *keyspace) sorted(lo, hi []byte) (store.Iterator, error) {
	s := extsort.New(extsort.Options{Compare: k.cmp.Compare, Memory: k.env.opts.Memory, TempDir: k.env.opts.TempDir})
	it := &sortedRows{k: k, sorter: s}
	if err := it.load(lo, hi); err != nil {
		s.Close()
		return nil, err
	}
	rows, err := s.Sort()
	if err != nil {
		s.Close()
		return nil, err
	}
	it.rows = rows
	return it, nil
}

// sortedRows is the iterator of a tree that was sorted.
type sortedRows struct {
	k      *keyspace
	sorter *extsort.Sorter
	rows   *extsort.Iterator
	seek   []byte // nil: no seek pending
	prev   []byte
	any    bool // prev is set
	count  int64
}

// load reads the whole tree. Its order does not matter, its number of rows does.
func (s *sortedRows) load(lo, hi []byte) error {
	w := checked{c: s.k.rows(), any: true}
	for {
		n, err := w.next()
		if err == io.EOF {
			return w.count()
		}
		if err != nil {
			return err
		}
		if lo != nil && s.k.compare(n.key, lo) < 0 || hi != nil && s.k.compare(n.key, hi) >= 0 {
			continue
		}
		value, err := w.c.value(&n)
		if err != nil {
			if err := w.c.pass(err, n.child); err != nil {
				return err
			}
			continue
		}
		if err := s.sorter.Add(0, n.key, value); err != nil {
			return err
		}
	}
}

// Next returns the next row. A key that the tree has twice is damage.
func (s *sortedRows) Next() (key, value []byte, err error) {
	for {
		_, key, value, err := s.rows.Next()
		if err != nil {
			return nil, nil, err
		}
		if s.any && s.k.compare(s.prev, key) >= 0 {
			return nil, nil, shift(corrupt(record.NoOffset, "key", "%s is in the tree twice", record.Quote(key)), s.k.env.path, s.k.label(), 0)
		}
		s.prev, s.any = append(s.prev[:0], key...), true
		if s.seek != nil && s.k.compare(key, s.seek) < 0 {
			continue
		}
		s.seek = nil
		s.count++
		return key, value, nil
	}
}

// SeekGE passes over the rows before key.
func (s *sortedRows) SeekGE(key []byte) error {
	if s.seek == nil || s.k.compare(s.seek, key) < 0 {
		s.seek = append([]byte{}, key...)
	}
	return nil
}

// Place names the file: where a sorted row stood is not kept.
func (s *sortedRows) Place() record.Place {
	return record.Place{File: dataFile, Off: record.NoOffset, Level: -1}
}

// Tally adds the rows.
func (s *sortedRows) Tally(t *record.Tally) {
	t.Entries += s.count
	t.Visible += s.count
	s.count = 0
}

// Close removes what is on disk.
func (s *sortedRows) Close() error { return s.sorter.Close() }
