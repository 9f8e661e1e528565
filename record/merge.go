package record

import (
	"bytes"
	"errors"
	"io"
)

// Compare orders headers of one database as readers yield them: by key, then by type.
func Compare(a, b *Header) int {
	if c := bytes.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return int(a.Type) - int(b.Type)
}

// Merge returns a reader of all records of the readers, in order. It owns them.
func Merge(readers ...Reader) Reader { return MergeBy(Compare, readers...) }

// MergeBy is Merge of readers whose records come in the order of compare. There are few readers (one a
// type, one a partition), so the smallest is found by looking at each.
func MergeBy(compare func(a, b *Header) int, readers ...Reader) Reader {
	if len(readers) == 1 {
		return readers[0]
	}
	m := &merged{compare: compare, cur: -1}
	for _, r := range readers {
		m.sources = append(m.sources, mergeSource{r: r})
	}
	return m
}

type mergeSource struct {
	r    Reader
	head *Header // nil: ask Next
	done bool
}

type merged struct {
	compare func(a, b *Header) int
	sources []mergeSource
	cur     int // source of the current record, -1 for none
}

// Next moves the source of the last record on and returns the smallest head.
func (m *merged) Next() (*Header, error) {
	if m.cur >= 0 {
		m.sources[m.cur].head = nil
	}
	m.cur = -1
	for i := range m.sources {
		s := &m.sources[i]
		if s.head == nil && !s.done {
			h, err := s.r.Next()
			if err != nil && err != io.EOF {
				return nil, err
			}
			s.head, s.done = h, err == io.EOF
		}
		if !s.done && (m.cur < 0 || m.compare(s.head, m.sources[m.cur].head) < 0) {
			m.cur = i
		}
	}
	if m.cur < 0 {
		return nil, io.EOF
	}
	return m.sources[m.cur].head, nil
}

// Read reads from the source of the current record.
func (m *merged) Read(dst []Element) (int, error) {
	if m.cur < 0 {
		return 0, io.EOF
	}
	return m.sources[m.cur].r.Read(dst)
}

// Settle settles the current record.
func (m *merged) Settle(c Class) {
	if m.cur >= 0 {
		m.sources[m.cur].r.Settle(c)
	}
}

// Close closes all readers and returns their errors.
func (m *merged) Close() error {
	var errs []error
	for i := range m.sources {
		errs = append(errs, m.sources[i].r.Close())
	}
	return errors.Join(errs...)
}
