package lmdb

import (
	"io"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// sorted reads all rows of a tree in any order and returns those of [lo, hi) sorted.
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

// sortedRows is the iterator of a sorted tree. In the sorter, a row's spot is appended to its value.
type sortedRows struct {
	k      *keyspace
	sorter *extsort.Sorter
	rows   *extsort.Iterator
	seek   []byte // nil: no seek pending
	ahead  twin   // the next row, if already read
	more   bool   // ahead is set
	cur    twin
	count  int64
	extra  int64 // duplicate rows that were not returned
	buf    []byte
}

// load reads the whole tree. It checks the number of rows, but not their order.
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
		leaf := &w.c.levels[len(w.c.levels)-1]
		at := spot{page: leaf.num, index: leaf.next - 1, order: w.rows}
		s.buf = at.append(append(s.buf[:0], value...))
		if err := s.sorter.Add(0, n.key, s.buf); err != nil {
			return err
		}
	}
}

// Next returns the next row. For a duplicate key it is the row that the server returns.
func (s *sortedRows) Next() (key, value []byte, err error) {
	for {
		if err := s.group(); err != nil {
			return nil, nil, err
		}
		if s.seek != nil && s.k.compare(s.cur.key, s.seek) < 0 {
			continue
		}
		s.seek = nil
		s.count++
		return s.cur.key, s.cur.value, nil
	}
}

// group reads the rows of the next key into cur.
func (s *sortedRows) group() error {
	if !s.more {
		if err := s.read(); err != nil {
			return err
		}
	}
	s.cur, s.ahead, s.more = s.ahead, s.cur, false
	var twins []twin
	for {
		err := s.read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if s.k.compare(s.cur.key, s.ahead.key) != 0 {
			s.more = true
			break
		}
		if twins == nil {
			twins = []twin{s.cur.clone()}
		}
		twins = append(twins, s.ahead.clone())
		s.extra++
	}
	if twins == nil {
		return nil
	}
	var err error
	s.cur, err = s.k.answer(twins)
	return err
}

// read reads a row into ahead.
func (s *sortedRows) read() error {
	_, key, value, err := s.rows.Next()
	if err != nil {
		return err
	}
	at, value := cutSpot(value)
	s.ahead.key = append(s.ahead.key[:0], key...)
	s.ahead.value = append(s.ahead.value[:0], value...)
	s.ahead.at = at
	return nil
}

// SeekGE skips the rows before key.
func (s *sortedRows) SeekGE(key []byte) error {
	if s.seek == nil || s.k.compare(s.seek, key) < 0 {
		s.seek = append([]byte{}, key...)
	}
	return nil
}

// Place returns the file without an offset, which is not kept for sorted rows.
func (s *sortedRows) Place() record.Place {
	return record.InFile(dataFile)
}

// Tally adds the rows.
func (s *sortedRows) Tally(t *record.Tally) {
	t.Entries += s.count + s.extra
	t.Visible += s.count
	t.Superseded += s.extra
	s.count, s.extra = 0, 0
}

// Close deletes the temporary files.
func (s *sortedRows) Close() error { return s.sorter.Close() }
