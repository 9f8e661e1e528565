package convert

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"kvferry/record"
)

// rivals merges readers of one type each like record.Merge, but the types of one key come in an order
// of preference: where a name may stand under one type only, the first that has elements keeps it.
type rivals struct {
	sources []rival
	cur     int // of the current record, -1 for none
}

type rival struct {
	record.Reader
	rank int
	head *record.Header // nil: ask Next
	done bool
}

// mergeRivals returns a reader of all records. It owns the readers; prefer ranks their types, those
// it does not name come last, in dump order.
func mergeRivals(readers map[record.Type]record.Reader, prefer []record.Type) record.Reader {
	m := &rivals{cur: -1}
	rank := map[record.Type]int{}
	for i, t := range prefer {
		rank[t] = i - len(prefer)
	}
	for _, t := range record.AllTypes.Types() {
		if r := readers[t]; r != nil {
			n, ok := rank[t]
			if !ok {
				n = int(t)
			}
			m.sources = append(m.sources, rival{Reader: r, rank: n})
		}
	}
	return m
}

// Next moves to the next record.
func (m *rivals) Next() (*record.Header, error) {
	if m.cur >= 0 {
		m.sources[m.cur].head = nil
	}
	m.cur = -1
	for i := range m.sources {
		s := &m.sources[i]
		if s.head == nil && !s.done {
			h, err := s.Reader.Next()
			if err != nil && err != io.EOF {
				return nil, err
			}
			s.head, s.done = h, err == io.EOF
		}
		if !s.done && (m.cur < 0 || s.before(&m.sources[m.cur])) {
			m.cur = i
		}
	}
	if m.cur < 0 {
		return nil, io.EOF
	}
	return m.sources[m.cur].head, nil
}

func (s *rival) before(t *rival) bool {
	return cmp.Or(bytes.Compare(s.head.Key, t.head.Key), cmp.Compare(s.rank, t.rank)) < 0
}

// Read reads from the current record.
func (m *rivals) Read(dst []record.Element) (int, error) {
	if m.cur < 0 {
		return 0, io.EOF
	}
	return m.sources[m.cur].Reader.Read(dst)
}

// Settle settles the current record.
func (m *rivals) Settle(c record.Class) {
	if m.cur >= 0 {
		m.sources[m.cur].Reader.Settle(c)
	}
}

// Close closes all readers.
func (m *rivals) Close() error {
	var errs []error
	for i := range m.sources {
		errs = append(errs, m.sources[i].Reader.Close())
	}
	return errors.Join(errs...)
}
